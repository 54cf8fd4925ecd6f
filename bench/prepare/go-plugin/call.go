package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/dra/v1"
)

// timings are what one run of calls took; milliseconds, but for the whole in seconds.
type timings struct {
	Prepare   []float64 `json:"prepare"`
	Unprepare []float64 `json:"unprepare"`
	Seconds   float64   `json:"seconds"`
}

type step func(context.Context, *api.Claim) error

// call prepares and unprepares claims over one connection, as the kubelet does, and prints how
// long each call took. The claims are dealt out to the callers, each of which goes through its own
// again and again. With -together every caller makes its n-th call when all have made the one before.
func call(arguments []string) error {
	flags := flag.NewFlagSet("call", flag.ExitOnError)
	socket := flags.String("socket", "", "the plugin's socket")
	file := flags.String("claims", "", "JSON file with the claims")
	callers := flags.Int("callers", 1, "how many call at a time")
	rounds := flags.Int("rounds", 1, "how often each caller goes through its claims")
	do := flags.String("do", "both", "prepare, unprepare, or both in turn")
	together := flags.Bool("together", false, "all callers begin each call at the same time")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	claims, err := read(*file)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("unix:"+*socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := api.NewDRAPluginClient(connection)
	// Connecting is not measured: the kubelet has been connected since it registered the plugin.
	if _, err := client.NodePrepareResources(context.Background(), &api.NodePrepareResourcesRequest{}); err != nil {
		return err
	}
	found, err := measure(client, claims, *callers, *rounds, *do, *together)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func read(path string) ([]*api.Claim, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var claims []*api.Claim
	return claims, json.Unmarshal(content, &claims)
}

func measure(client api.DRAPluginClient, claims []*api.Claim, callers, rounds int, do string, together bool) (*timings, error) {
	found := &timings{Prepare: []float64{}, Unprepare: []float64{}}
	var mutex sync.Mutex
	var failure error
	work := func(claim *api.Claim, into *[]float64, act step) {
		begun := time.Now()
		err := act(context.Background(), claim)
		took := time.Since(begun).Seconds() * 1000
		mutex.Lock()
		defer mutex.Unlock()
		*into = append(*into, took)
		if err != nil {
			failure = err
		}
	}
	prepare := func(claim *api.Claim) { work(claim, &found.Prepare, prepareWith(client)) }
	unprepare := func(claim *api.Claim) { work(claim, &found.Unprepare, unprepareWith(client)) }
	steps := map[string][]func(*api.Claim){
		"prepare": {prepare}, "unprepare": {unprepare}, "both": {prepare, unprepare},
	}[do]
	begun := time.Now()
	if together {
		for range rounds {
			for _, each := range steps {
				inParallel(callers, func(caller int) { each(claims[caller]) })
			}
		}
	} else {
		inParallel(callers, func(caller int) {
			for range rounds {
				for at := caller; at < len(claims); at += callers {
					for _, each := range steps {
						each(claims[at])
					}
				}
			}
		})
	}
	found.Seconds = time.Since(begun).Seconds()
	return found, failure
}

func inParallel(callers int, work func(caller int)) {
	var group sync.WaitGroup
	begin := make(chan struct{})
	for caller := range callers {
		group.Go(func() {
			<-begin
			work(caller)
		})
	}
	close(begin)
	group.Wait()
}

func prepareWith(client api.DRAPluginClient) step {
	return func(ctx context.Context, claim *api.Claim) error {
		answer, err := client.NodePrepareResources(ctx, &api.NodePrepareResourcesRequest{Claims: []*api.Claim{claim}})
		if err != nil {
			return err
		}
		result := answer.Claims[claim.Uid]
		if result == nil || result.Error != "" || len(result.Devices) == 0 {
			return fmt.Errorf("preparing claim %s: %v", claim.Name, result)
		}
		return nil
	}
}

func unprepareWith(client api.DRAPluginClient) step {
	return func(ctx context.Context, claim *api.Claim) error {
		answer, err := client.NodeUnprepareResources(ctx, &api.NodeUnprepareResourcesRequest{Claims: []*api.Claim{claim}})
		if err != nil {
			return err
		}
		if result := answer.Claims[claim.Uid]; result == nil || result.Error != "" {
			return fmt.Errorf("unpreparing claim %s: %v", claim.Name, result)
		}
		return nil
	}
}
