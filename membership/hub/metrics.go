package hub

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// membersDesc is a descriptor and not a registered metric: each hub is a separate collector.
var membersDesc = prometheus.NewDesc("muster_members", "MemberClusters by their phase.", []string{"phase"}, nil)

// phases counts the members in each phase. It is a prometheus.Collector. The zero value is ready for use.
type phases struct {
	mu sync.Mutex
	of map[string]v1alpha1.Phase
}

func (p *phases) set(member string, phase v1alpha1.Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string]v1alpha1.Phase{}
	}
	p.of[member] = phase
}

func (p *phases) forget(member string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, member)
}

// Describe implements prometheus.Collector.
func (p *phases) Describe(ch chan<- *prometheus.Desc) { ch <- membersDesc }

// Collect implements prometheus.Collector.
func (p *phases) Collect(ch chan<- prometheus.Metric) {
	counts := map[v1alpha1.Phase]int{}
	for _, phase := range []v1alpha1.Phase{
		v1alpha1.PhasePending, v1alpha1.PhaseAccepted, v1alpha1.PhaseJoining, v1alpha1.PhaseJoined,
		v1alpha1.PhaseLeaving, v1alpha1.PhaseLeft, v1alpha1.PhaseDenied,
	} {
		counts[phase] = 0
	}
	p.mu.Lock()
	for _, phase := range p.of {
		counts[phase]++
	}
	p.mu.Unlock()
	for phase, count := range counts {
		ch <- prometheus.MustNewConstMetric(membersDesc, prometheus.GaugeValue, float64(count), string(phase))
	}
}

// exposed returns a runnable that registers metrics while a manager is the leader. If a program is the hub of several
// fleets, only the metrics of the first are registered, because their names are equal.
func exposed(collectors ...prometheus.Collector) func(context.Context) error {
	return func(ctx context.Context) error {
		var ours []prometheus.Collector
		for _, collector := range collectors {
			var already prometheus.AlreadyRegisteredError
			if err := metrics.Registry.Register(collector); errors.As(err, &already) {
				continue
			} else if err != nil {
				return err
			}
			ours = append(ours, collector)
		}
		<-ctx.Done()
		for _, collector := range ours {
			metrics.Registry.Unregister(collector)
		}
		return nil
	}
}
