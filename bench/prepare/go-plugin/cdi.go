package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

const cdiKind = "gcu.enflame.com/claim"

// cdiFiles are the claims' specifications in a folder; not synced, as ours are not.
type cdiFiles struct{ folder string }

func cdiID(uid types.UID, result resourceapi.DeviceRequestAllocationResult) string {
	return cdiKind + "=" + deviceName(uid, result)
}

func deviceName(uid types.UID, result resourceapi.DeviceRequestAllocationResult) string {
	name := string(uid) + "-" + result.Device
	if result.ShareID != nil {
		name += "-" + string(*result.ShareID)
	}
	return name
}

func (c cdiFiles) write(uid types.UID, results []resourceapi.DeviceRequestAllocationResult) error {
	type object = map[string]any
	devices := make([]object, 0, len(results))
	for _, result := range results {
		edits := object{
			"env":         []string{"ENFLAME_VISIBLE_DEVICES=0"},
			"deviceNodes": []object{{"path": "/dev/gcu0", "permissions": "rw"}, {"path": "/dev/gcuctl", "permissions": "rw"}},
		}
		devices = append(devices, object{"name": deviceName(uid, result), "containerEdits": edits})
	}
	content, err := json.MarshalIndent(object{"cdiVersion": "0.6.0", "kind": cdiKind, "devices": devices}, "", "  ")
	if err != nil {
		return err
	}
	unfinished := c.path(uid) + ".new"
	if err := os.WriteFile(unfinished, content, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, c.path(uid))
}

func (c cdiFiles) remove(uid types.UID) error {
	err := os.Remove(c.path(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (c cdiFiles) path(uid types.UID) string {
	return filepath.Join(c.folder, "claim-"+string(uid)+".json")
}
