package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// A fleet is a hub and its members.
type fleet struct {
	config     *rest.Config
	kubeconfig string
	client     client.Client
	members    []*member
	planes     []*localplane.Plane
}

// methods are the registration methods, which the members use alternately: the first member joins by token, the second
// by certificate.
var methods = []registration.Method{token.Method{}, csr.Method{}}

// connect connects to the clusters that the flags name, or starts local clusters. The caller must stop the fleet even
// after an error.
func connect(ctx context.Context, f flags) (*fleet, error) {
	files := append([]string{"hub=" + f.hub}, f.members...)
	if f.hub == "" {
		files = []string{"hub=", "east=", "west="}
	}
	configs := make([]*rest.Config, len(files))
	names, planes := make([]string, len(files)), make([]*localplane.Plane, len(files))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, entry := range files {
		name, file, _ := strings.Cut(entry, "=")
		names[i] = name
		group.Go(func() (err error) {
			if file != "" {
				if configs[i], err = clientcmd.BuildConfigFromFlags("", file); err != nil {
					return fmt.Errorf("read the kubeconfig of %s: %w", name, err)
				}
				configs[i].QPS = -1 // no client-side rate limit: the API server limits requests itself
				return nil
			}
			options := localplane.Options{Name: name}
			if i > 0 {
				options.Nodes = 2 // nodes of kwok, which need no machine
			}
			if planes[i], err = localplane.Start(groupCtx, options); err != nil {
				return fmt.Errorf("start control plane %s: %w", name, err)
			}
			configs[i] = planes[i].Config()
			return nil
		})
	}
	err := group.Wait()
	fleet := &fleet{}
	for _, plane := range planes {
		if plane != nil {
			fleet.planes = append(fleet.planes, plane)
		}
	}
	if err != nil {
		return fleet, err
	}
	for i, config := range configs {
		c, err := client.New(config, client.Options{Scheme: newScheme()})
		if err != nil {
			return fleet, fmt.Errorf("connect to %s: %w", names[i], err)
		}
		_, kubeconfig, _ := strings.Cut(files[i], "=")
		if planes[i] != nil {
			kubeconfig = planes[i].Kubeconfig()
		}
		if i == 0 {
			fleet.config, fleet.kubeconfig, fleet.client = config, kubeconfig, c
			continue
		}
		fleet.members = append(fleet.members, &member{
			name: names[i], config: config, kubeconfig: kubeconfig, client: c, method: methods[(i-1)%len(methods)],
		})
	}
	return fleet, nil
}

// stop stops the agents and the local control planes.
func (f *fleet) stop() error {
	var group errgroup.Group
	for _, m := range f.members {
		group.Go(m.stop)
	}
	err := group.Wait()
	var planes errgroup.Group
	for _, plane := range f.planes {
		planes.Go(plane.Stop)
	}
	return errors.Join(err, planes.Wait())
}

// run starts the fleet and shows it live, or runs each step once. The returned error includes errors of the cleanup.
func run(ctx context.Context, f flags) (err error) {
	if f.hub == "" {
		say("Starting the control planes.")
	}
	fleet, err := connect(ctx, f)
	defer func() { err = errors.Join(err, fleet.stop()) }()
	if err != nil {
		return outcome(ctx, f, err)
	}

	// If the hub ends by itself, the program ends.
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hubCtx, stopHub := context.WithCancel(context.Background())
	hubDone := make(chan error, 1)
	go func() {
		err := runHub(hubCtx, fleet.config)
		if err != nil {
			cancel(fmt.Errorf("run the hub: %w", err))
		}
		hubDone <- err
	}()
	defer func() {
		stopHub()
		if failed := <-hubDone; err == nil && ctx.Err() == nil { // the hub failed after the last step
			err = failed
		}
	}()

	do := fleet.live
	if f.once {
		do = fleet.once
	}
	err = do(running)
	if failed := context.Cause(running); failed != nil && ctx.Err() == nil {
		return failed
	}
	return outcome(ctx, f, err)
}

var errInterrupted = errors.New("interrupted before all steps were done")

// outcome returns nil if the user interrupted a live fleet, which is its normal end. With --once, an interrupt is an
// error.
func outcome(ctx context.Context, f flags, err error) error {
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case f.once:
		return errInterrupted
	default:
		return nil
	}
}

// until polls done until it returns true. After the time limit, the error contains the awaited state and the last
// reason.
func until(ctx context.Context, timeLimit time.Duration, what string, done func(context.Context) (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	why := "nothing was seen"
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		ok, reason := done(ctx)
		if !ok && ctx.Err() == nil {
			why = reason
		}
		return ok, nil
	})
	if err != nil {
		return fmt.Errorf("waited %s for %s: %s", timeLimit, what, why)
	}
	return nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
