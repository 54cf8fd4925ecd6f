package main

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
)

// States of a claim; each is durable before what follows it, as in our agent.
const (
	intent      = "intent"
	prepared    = "prepared"
	unpreparing = "unpreparing"
)

// plugin does what ours does for whole and shared cards. The helper calls one method at a time,
// and another instance may have worked in between, so that the state is read at each call.
type plugin struct {
	store store
	cdi   cdiFiles
}

func (p *plugin) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := p.prepare(claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Err: err, Devices: devices}
	}
	return results, nil
}

func (p *plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = p.unprepare(claim.UID)
	}
	return results, nil
}

func (p *plugin) HandleError(ctx context.Context, err error, message string) {
	klog.FromContext(ctx).Error(err, message)
}

// WatchHealthStatus is answered as by a driver that reports no health.
func (p *plugin) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (p *plugin) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	state, err := p.store.read()
	if err != nil {
		return nil, err
	}
	held := state.Claims[claim.UID]
	if held.State != prepared {
		held = entry{State: intent, Results: claim.Status.Allocation.Devices.Results}
		if err := state.admit(claim.UID, held); err != nil {
			return nil, err
		}
		if err := p.store.write(state, claim.UID, held); err != nil {
			return nil, err
		}
		if err := p.cdi.write(claim.UID, held.Results); err != nil {
			return nil, err
		}
		held.State = prepared
		if err := p.store.write(state, claim.UID, held); err != nil {
			return nil, err
		}
	}
	devices := make([]kubeletplugin.Device, 0, len(held.Results))
	for _, result := range held.Results {
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			CDIDeviceIDs: []string{cdiID(claim.UID, result)},
			ShareID:      result.ShareID,
		})
	}
	return devices, nil
}

func (p *plugin) unprepare(uid types.UID) error {
	state, err := p.store.read()
	if err != nil {
		return err
	}
	held, found := state.Claims[uid]
	if !found {
		return p.cdi.remove(uid)
	}
	held.State = unpreparing
	if err := p.store.write(state, uid, held); err != nil {
		return err
	}
	if err := p.cdi.remove(uid); err != nil {
		return err
	}
	return p.store.forget(state, uid)
}

// admit refuses a device that another claim has, unless both have shares of it.
func (s *checkpoint) admit(uid types.UID, wanted entry) error {
	for other, held := range s.Claims {
		if other == uid {
			continue
		}
		for _, theirs := range held.Results {
			for _, ours := range wanted.Results {
				same := ours.Pool == theirs.Pool && ours.Device == theirs.Device
				if same && (ours.ShareID == nil || theirs.ShareID == nil || *ours.ShareID == *theirs.ShareID) {
					return fmt.Errorf("claim %s has device %s", other, ours.Device)
				}
			}
		}
	}
	return nil
}
