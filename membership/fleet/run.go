package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership/internal/panics"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// clustersName is the key of the runner of live clusters. No Runner has this name.
const clustersName = ""

// runs contains the running runners of a member.
type runs struct {
	mode     v1alpha1.JoinMode             // with which they were started
	clusters Runner                        // the runner that engaged the live cluster
	cancels  map[string]context.CancelFunc // by the name of the runner
}

// cancel cancels a runner if it runs, and does not wait for it.
func (r *runs) cancel(name string) {
	if cancel, there := r.cancels[name]; there {
		cancel()
		delete(r.cancels, name)
	}
}

// cancelAll cancels all runners of the member, and does not wait for them.
func (r *runs) cancelAll() {
	for name := range r.cancels {
		r.cancel(name)
	}
}

// restart cancels the runners that must start again because the join mode has changed or another provider was started.
func (r *runs) restart(mode v1alpha1.JoinMode, clusters Runner) {
	if mode != r.mode {
		for name := range r.cancels {
			if name != clustersName { // live clusters do not depend on the join mode
				r.cancel(name)
			}
		}
		r.mode = mode
	}
	if clusters != r.clusters {
		r.cancel(clustersName)
		r.clusters = clusters
	}
}

// syncRunners starts and stops the runners of a member.
func (m *member) syncRunners(ctx context.Context, cluster *v1alpha1.MemberCluster, duties duties) {
	live := duties.live
	m.runs.restart(cluster.Spec.JoinMode, live.runner)
	if duties.leading && m.way != nil {
		for _, runner := range m.fleet.options.Runners {
			m.start(ctx, runner.Name(), runner, cluster)
		}
	}
	permitted := live.permits == nil || live.permits(cluster.Labels)
	if live.runner != nil && m.way != nil && m.way.known.Load() && joined(cluster) && permitted {
		m.start(ctx, clustersName, live.runner, cluster)
	} else {
		m.runs.cancel(clustersName)
	}
}

// start runs a runner until its context is canceled, unless it is running already. An earlier call must return first.
func (m *member) start(ctx context.Context, name string, runner Runner, cluster *v1alpha1.MemberCluster) {
	if _, there := m.runs.cancels[name]; there {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	m.runs.cancels[name] = cancel
	r := &run{fleet: m.fleet, member: m, way: m.way, runner: runner, cluster: cluster, name: name}
	m.fleet.goroutines.start(m.name+"/"+name, func() { r.keep(ctx) })
}

// run is a runner of a member.
type run struct {
	fleet   *Fleet
	member  *member
	way     *way
	runner  Runner
	name    string
	cluster *v1alpha1.MemberCluster
}

// backoffReset is how long a runner must run before its backoff is reset.
const backoffReset = time.Minute

// keep calls the runner until it returns nil or the context ends.
func (r *run) keep(ctx context.Context) {
	clock := r.fleet.options.Clock
	fresh := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 30 * time.Second}
	backoff := fresh
	for ctx.Err() == nil {
		began := clock.Now()
		err := r.once(ctx)
		if ctx.Err() != nil || err == nil {
			return
		}
		if clock.Since(began) > backoffReset {
			backoff = fresh
		}
		pause := backoff.Step()
		r.fleet.metrics.failures.WithLabelValues(r.runner.Name()).Inc()
		leave := r.fleet.metrics.enter(r.runner.Name(), failing)
		details := []any{"runner", r.runner.Name(), "member", r.member.name, "after", pause}
		if panicked, ok := errors.AsType[*panics.Error](err); ok {
			details = append(details, "stack", string(panicked.Stack))
		}
		r.fleet.log.Error(err, "A runner failed and is called again", details...)
		// +event:object=MemberCluster
		// +event:message=the name of the runner and its error
		r.fleet.recorder.Eventf(r.latest(), nil, corev1.EventTypeWarning, "RunnerFailed", "Run", "%s",
			bounded.Text(fmt.Sprintf("%s: %v", r.runner.Name(), err), maxNote))
		select {
		case <-ctx.Done():
		case <-clock.After(pause):
		}
		leave()
	}
}

// once calls the runner and waits until it has returned. Its config works until the end of the grace period.
func (r *run) once(ctx context.Context) error {
	config, takeBack, err := r.way.lend()
	if err != nil {
		return err
	}
	defer takeBack()
	leave := r.fleet.metrics.enter(r.runner.Name(), running)
	defer func() { leave() }()
	returned := make(chan error, 1)
	go func() {
		returned <- panics.Recovered(func() error {
			return r.runner.Run(ctx,
				Connected{Cluster: r.latest().DeepCopy(), Config: config})
		})
	}()
	select {
	case err := <-returned:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-returned:
		return err
	case <-r.fleet.options.Clock.After(grace):
		r.fleet.log.Info("A runner has not returned in time; its connections are closed", "runner", r.runner.Name(),
			"member", r.member.name)
		takeBack()
		leave()
		leave = r.fleet.metrics.enter(r.runner.Name(), overdue)
		return <-returned
	}
}

// latest returns the last observed MemberCluster.
func (r *run) latest() *v1alpha1.MemberCluster {
	if o := r.member.inbox.latest(); o != nil && o.cluster.UID == r.cluster.UID {
		return o.cluster
	}
	return r.cluster
}

func messageOf(what string, err error) string { return what + ": " + err.Error() + "." }

// maxNote is the size limit of an Event's note, in bytes.
const maxNote = 1024
