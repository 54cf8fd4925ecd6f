package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// checkpoint is what drivers keep with the kubelet's checkpointmanager: one JSON file with all
// claims, and a checksum.
type checkpoint struct {
	Claims map[types.UID]entry `json:"claims"`
}

type entry struct {
	State   string                                      `json:"state"`
	Results []resourceapi.DeviceRequestAllocationResult `json:"results"`
}

type envelope struct {
	Checksum uint32          `json:"checksum"`
	Data     json.RawMessage `json:"data"`
}

// store writes as k8s.io/kubernetes/pkg/kubelet/util/store does: a temporary file, fsync, rename.
type store struct {
	path      string
	syncDelay time.Duration
}

func (s store) read() (*checkpoint, error) {
	found := &checkpoint{Claims: map[types.UID]entry{}}
	content, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	var outer envelope
	if err := json.Unmarshal(content, &outer); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(outer.Data) != outer.Checksum {
		return nil, fmt.Errorf("%s is damaged", s.path)
	}
	return found, json.Unmarshal(outer.Data, found)
}

func (s store) write(state *checkpoint, uid types.UID, held entry) error {
	state.Claims[uid] = held
	return s.save(state)
}

func (s store) forget(state *checkpoint, uid types.UID) error {
	delete(state.Claims, uid)
	return s.save(state)
}

func (s store) save(state *checkpoint) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	content, err := json.Marshal(envelope{crc32.ChecksumIEEE(data), data})
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(s.path), ".")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		time.Sleep(s.syncDelay)
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), s.path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
