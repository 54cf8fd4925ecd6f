// The Filter plugins that compare a pod with the resources and the pods of a node.
package main

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// snapshot is a cluster, and pods that Wait there for a node.
type snapshot struct {
	Nodes      []*v1.Node
	Pods       []*v1.Pod
	Namespaces []*v1.Namespace
	Classes    []*resourceapi.DeviceClass
	Wait       []*v1.Pod
}

// verdict says whether the pod fits the node, or would if all pods of lower priority there ended.
type verdict struct {
	Fits     bool     `json:"fits"`
	Preempts bool     `json:"preempts"`
	Reasons  []string `json:"reasons,omitempty"`
}

// handle has what the plugins ask of their framework.
type handle struct {
	fwk.Handle
	nodes   *cache.Snapshot
	factory informers.SharedInformerFactory
	classes extendedResources
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.nodes }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return parallelize.NewParallelizer(1) }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return h.classes }

// extendedResources knows which extended resources DeviceClasses serve.
type extendedResources struct {
	fwk.SharedDRAManager
	byName map[v1.ResourceName]*resourceapi.DeviceClass
}

func (r extendedResources) DeviceClassResolver() fwk.DeviceClassResolver { return r }

func (r extendedResources) GetDeviceClass(name v1.ResourceName) *resourceapi.DeviceClass {
	return r.byName[name]
}

func newHandle(asked snapshot) (*handle, error) {
	served := map[v1.ResourceName]*resourceapi.DeviceClass{}
	for _, class := range asked.Classes {
		served[v1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)] = class
		if name := class.Spec.ExtendedResourceName; name != nil {
			served[v1.ResourceName(*name)] = class
		}
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	namespaces := factory.Core().V1().Namespaces().Informer().GetIndexer()
	for _, namespace := range asked.Namespaces {
		if err := namespaces.Add(namespace); err != nil {
			return nil, err
		}
	}
	nodes := cache.NewSnapshot(asked.Pods, asked.Nodes)
	return &handle{nodes: nodes, factory: factory, classes: extendedResources{byName: served}}, nil
}

type plugin interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
}

func newPlugins(ctx context.Context, h *handle) ([]plugin, error) {
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	scored := []config.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	strategy := &config.ScoringStrategy{Type: config.LeastAllocated, Resources: scored}
	made := []plugin{}
	for _, make := range []func() (fwk.Plugin, error){
		func() (fwk.Plugin, error) {
			return noderesources.NewFit(ctx, &config.NodeResourcesFitArgs{ScoringStrategy: strategy}, h, features)
		},
		func() (fwk.Plugin, error) { return nodeports.New(ctx, nil, h, features) },
		func() (fwk.Plugin, error) {
			return interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, h, features)
		},
		func() (fwk.Plugin, error) {
			return podtopologyspread.New(
				ctx, &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, h, features)
		},
	} {
		each, err := make()
		if err != nil {
			return nil, err
		}
		made = append(made, each.(plugin))
	}
	return made, nil
}

// cycle is the attempt to schedule one pod.
type cycle struct {
	pod     *v1.Pod
	state   fwk.CycleState
	plugins []plugin
}

func begin(ctx context.Context, pod *v1.Pod, plugins []plugin, nodes []fwk.NodeInfo) cycle {
	begun := cycle{pod: pod, state: framework.NewCycleState()}
	for _, each := range plugins {
		if _, status := each.PreFilter(ctx, begun.state, pod, nodes); !status.IsSkip() {
			begun.plugins = append(begun.plugins, each)
		}
	}
	return begun
}

func (c cycle) filter(ctx context.Context, node fwk.NodeInfo) *fwk.Status {
	for _, each := range c.plugins {
		if status := each.Filter(ctx, c.state, c.pod, node); !status.IsSuccess() {
			return status
		}
	}
	return nil
}

// preempts is the first step of the plugin DefaultPreemption: without all pods of lower priority.
func (c cycle) preempts(ctx context.Context, node fwk.NodeInfo) bool {
	if policy := c.pod.Spec.PreemptionPolicy; policy != nil && *policy == v1.PreemptNever {
		return false
	}
	emptied, without := node.Snapshot(), cycle{c.pod, c.state.Clone(), c.plugins}
	victims := 0
	for _, each := range node.GetPods() {
		if corev1.PodPriority(each.GetPod()) >= corev1.PodPriority(c.pod) {
			continue
		}
		victims++
		if err := emptied.RemovePod(klog.FromContext(ctx), each.GetPod()); err != nil {
			panic(err)
		}
		for _, plugin := range without.plugins {
			if extensions := plugin.PreFilterExtensions(); extensions != nil {
				extensions.RemovePod(ctx, without.state, c.pod, each, emptied)
			}
		}
	}
	return victims > 0 && without.filter(ctx, emptied).IsSuccess()
}

func (c cycle) judge(ctx context.Context, node fwk.NodeInfo) verdict {
	status := c.filter(ctx, node)
	if status.IsSuccess() {
		return verdict{Fits: true}
	}
	resolvable := status.Code() != fwk.UnschedulableAndUnresolvable
	return verdict{Preempts: resolvable && c.preempts(ctx, node), Reasons: status.Reasons()}
}

// filter returns a verdict for each pod that waits, by the node's name.
func filter(asked snapshot) []map[string]verdict {
	ctx := context.Background()
	metrics.InitMetrics() // which the plugins count in
	h, err := newHandle(asked)
	if err != nil {
		panic(err)
	}
	plugins, err := newPlugins(ctx, h)
	if err != nil {
		panic(err)
	}
	nodes, err := h.nodes.NodeInfos().List()
	if err != nil {
		panic(err)
	}
	nodes = slices.Clone(nodes)
	verdicts := []map[string]verdict{}
	for _, pod := range asked.Wait {
		begun, judged := begin(ctx, pod, plugins, nodes), map[string]verdict{}
		for _, node := range nodes {
			judged[node.Node().Name] = begun.judge(ctx, node)
		}
		verdicts = append(verdicts, judged)
	}
	return verdicts
}
