// The allocator: what devices a pod's claims get of a node.
package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// What kube-scheduler 1.37 passes with its default feature gates (AllocatorFeatures of the plugin
// dynamicresources).
var features = structured.Features{
	AdminAccess:             true,
	PrioritizedList:         true,
	PartitionableDevices:    true,
	DeviceTaints:            true,
	DeviceBindingAndStatus:  true,
	ConsumableCapacity:      true,
	FractionalCapacityRange: true,
}

var expressions = cel.NewCache(256, cel.Features{EnableConsumableCapacity: true})

// question is a pod's Claims, to be allocated on Node, and what Held claims have already.
type question struct {
	Node    string
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	Held    []*resourceapi.ResourceClaim
	Claims  []*resourceapi.ResourceClaim
}

// answer has the results of each claim, or null where there are no devices. Error is what ends the
// pod's scheduling on all nodes.
type answer struct {
	Results [][]resourceapi.DeviceRequestAllocationResult `json:"results"`
	Error   string                                        `json:"error,omitempty"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no DeviceClass %s", name)
}

// allocated is what the plugin keeps of claims (foreachAllocatedDevice).
func allocated(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case ptr.Deref(result.AdminAccess, false):
			case result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

func solve(asked question) answer {
	ctx := context.Background()
	allocator, err := structured.NewAllocator(
		ctx, features, allocated(asked.Held), classes(asked.Classes), asked.Slices, expressions)
	if err != nil {
		return answer{Error: err.Error()}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: asked.Node}}
	allocations, err := allocator.Allocate(ctx, node, asked.Claims)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var solved answer
	for _, allocation := range allocations {
		solved.Results = append(solved.Results, allocation.Devices.Results)
	}
	return solved
}
