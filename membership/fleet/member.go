package fleet

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// member is the goroutine of one member, so that a request that does not return delays no other member. The goroutine
// owns the fields after the inbox.
type member struct {
	fleet *Fleet
	name  string
	inbox inbox

	uid     types.UID
	way     *way // nil: none
	runs    runs
	probes  probes
	found   finding                 // to be reported
	counted string                  // its reason in the metrics
	cluster *v1alpha1.MemberCluster // as last written, until it is observed
}

func newMember(f *Fleet, name string) *member {
	return &member{
		fleet: f, name: name, inbox: inbox{news: make(chan struct{}, 1)},
		runs: runs{cancels: map[string]context.CancelFunc{}},
	}
}

// concerns reports whether a member requires any action.
func concerns(o *observed) bool {
	return o.cluster.Spec.KubeConfigSecretRef != nil || o.cluster.Status.Endpoint != nil ||
		meta.FindStatusCondition(o.cluster.Status.Conditions, v1alpha1.ConditionReachable) != nil
}

// inbox passes the latest observation of a member to its goroutine.
type inbox struct {
	news chan struct{} // of capacity 1

	mu        sync.Mutex
	observed  *observed // the latest observation; nil: the member is deleted
	interrupt func()    // ends the attempt with the previous observation
}

func (i *inbox) wake() {
	select {
	case i.news <- struct{}{}:
	default:
	}
}

func (i *inbox) latest() *observed {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.observed
}

func (i *inbox) notify(o *observed) {
	i.mu.Lock()
	if !i.observed.sameWay(o) && i.interrupt != nil {
		i.interrupt()
	}
	i.observed = o
	i.mu.Unlock()
	i.wake()
}

// begin returns the latest observation, and a context for an attempt with it.
func (i *inbox) begin(ctx context.Context) (*observed, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.interrupt = cancel
	return i.observed, ctx, cancel
}

// probes are the state of the probes of a member.
type probes struct {
	tried    *secretSeen // the Secret of the last probe; nil: none, or it must be tried again
	last     finding     // of the last probe
	failures int         // consecutive
	next     time.Time   // time of the next probe
}

// due reports whether the next probe is due, or the current Secret was not tried yet.
func (p *probes) due(secret *secretSeen, now time.Time) bool {
	return p.tried == nil || p.tried.access.Revision() != secret.access.Revision() || !now.Before(p.next)
}

// count counts a probe, and determines the time of the next one.
func (p *probes) count(found finding, interval time.Duration, now time.Time) {
	if found.reason == v1alpha1.ReasonReachable {
		p.failures = 0
	} else {
		p.failures++
		interval /= maxFailures
	}
	p.next = now.Add(wait.Jitter(interval, 0.2))
}

func (m *member) run(ctx context.Context) {
	defer func() {
		m.disconnect()
		m.count("")
	}()
	for ctx.Err() == nil {
		o, attempt, done := m.inbox.begin(ctx)
		again := m.step(ctx, attempt, o)
		done()
		if o == nil || !concerns(o) {
			if m.fleet.goroutines.leave(m) {
				return
			}
			continue
		}
		var timer <-chan time.Time
		if again > 0 {
			timer = m.fleet.options.Clock.After(again)
		}
		select {
		case <-ctx.Done():
		case <-m.inbox.news:
		case <-timer:
		}
	}
}

// step observes the member, starts the required runners, and reports. It returns the time until the next step; 0:
// until the next observation.
func (m *member) step(ctx, attempt context.Context, o *observed) time.Duration {
	duties := m.fleet.duties()
	if o == nil {
		m.disconnect()
		return 0
	}
	if o.cluster.UID != m.uid {
		m.disconnect()
		m.uid, m.cluster, m.found, m.probes.last = o.cluster.UID, nil, finding{}, finding{}
	}
	m.checkIdentity(o.cluster)
	switch {
	case duties.none():
		m.disconnect()
		m.found = finding{} // determined again when required
		m.count("")
		return 0
	case o.secret.garbled: // the previous content is used as long as it works
		m.found, m.probes.tried = o.secret.problem, nil
		if m.way != nil {
			m.found.message += " The hub uses the previous content until the Secret is valid."
		}
	case o.secret.access == nil:
		m.disconnect()
		m.found = o.secret.problem
	case m.way == nil:
		var err error
		if m.way, err = newWay(o.secret.access, &m.fleet.options); err != nil {
			m.found = finding{v1alpha1.ReasonKubeConfigInvalid, messageOf("The Secret cannot be used", err)}
		}
	}
	m.count(m.found.counted(o.cluster))
	m.syncRunners(ctx, o.cluster, duties)
	if m.way != nil && o.secret.access != nil && m.probes.due(&o.secret, m.fleet.options.Clock.Now()) {
		m.probe(attempt, o)
		if attempt.Err() != nil {
			m.probes.tried = nil
			return time.Nanosecond // there is a newer observation
		}
		m.count(m.found.counted(o.cluster))
		m.syncRunners(ctx, o.cluster, duties)
	}
	if duties.leading && !m.report(ctx, o.cluster) {
		return wait.Jitter(time.Second, 1)
	}
	if m.way == nil || o.secret.access == nil {
		return 0
	}
	return max(m.probes.next.Sub(m.fleet.options.Clock.Now()), time.Nanosecond)
}

// count counts the member under a reason in the metrics; empty: under none.
func (m *member) count(reason string) {
	m.fleet.metrics.counted(m.counted, reason)
	m.counted = reason
}

// checkIdentity ends all connections of the member if its agent reports another cluster than the connected one.
func (m *member) checkIdentity(cluster *v1alpha1.MemberCluster) {
	if m.way == nil || m.way.identity == "" ||
		recognized(identityOf(cluster), m.way.identity).reason == v1alpha1.ReasonReachable {
		return
	}
	m.way.known.Store(false) // for runners that have not returned yet
	m.disconnect()
}

// probe probes the member, and uses a new Secret if it leads to the same member.
func (m *member) probe(ctx context.Context, o *observed) {
	options := m.fleet.options
	limited, cancel := context.WithTimeout(ctx, options.ProbeTimeout)
	defer cancel()
	began := options.Clock.Now()
	m.probes.tried = &o.secret
	var found finding
	if m.way.current(o.secret.access) {
		found = m.way.ready(limited)
	} else {
		found = m.connect(limited, o)
	}
	if ctx.Err() != nil {
		return // a newer observation has interrupted the attempt
	}
	m.fleet.metrics.probes.WithLabelValues(found.reason).Observe(options.Clock.Since(began).Seconds())
	m.probes.count(found, options.ProbeInterval, options.Clock.Now())
	found = found.after(m.current(o.cluster), m.probes.failures)
	m.found, m.probes.last = found.stabilized(m.found, m.probes.last), found
}

// connect tries a new Secret, and uses it if it leads to the member.
func (m *member) connect(ctx context.Context, o *observed) finding {
	candidate, err := newWay(o.secret.access, &m.fleet.options)
	if err != nil {
		return finding{v1alpha1.ReasonKubeConfigInvalid, messageOf("The Secret cannot be used", err)}
	}
	defer candidate.end()
	got, found := candidate.identify(ctx)
	if found.reason != v1alpha1.ReasonReachable {
		return found
	}
	want := m.way.identity
	if want == "" {
		want = identityOf(o.cluster)
	}
	if found = recognized(want, got); found.reason != v1alpha1.ReasonReachable {
		return found
	}
	if err := m.way.follow(o.secret.access, got); err != nil {
		return finding{v1alpha1.ReasonKubeConfigInvalid, messageOf("The Secret cannot be used", err)}
	}
	return found
}

// current returns the MemberCluster that was last written or, if it is observed already, the observed one.
func (m *member) current(cluster *v1alpha1.MemberCluster) *v1alpha1.MemberCluster {
	if m.cluster != nil && m.cluster.ResourceVersion != cluster.ResourceVersion {
		return m.cluster
	}
	return cluster
}

// report writes the condition and the endpoint if they have changed. It returns false if the write must be retried.
func (m *member) report(ctx context.Context, cluster *v1alpha1.MemberCluster) bool {
	conditions, news := desiredConditions(cluster, m.found, metav1.NewTime(m.fleet.options.Clock.Now()))
	endpoint, moved := desiredEndpoint(cluster, m.way)
	if !news && !moved {
		m.cluster = nil
		return true
	}
	if m.cluster != nil {
		_, news := desiredConditions(m.cluster, m.found, metav1.Time{})
		if _, moved := desiredEndpoint(m.cluster, m.way); !news && !moved {
			return true // written already, and the cache lags
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written := cluster.DeepCopy()
	written.Status.Conditions, written.Status.Endpoint = conditions, endpoint
	lock := client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{})
	switch err := m.fleet.client.Status().Patch(ctx, written, lock); {
	case apierrors.IsNotFound(err) || ctx.Err() != nil:
		return true
	case apierrors.IsConflict(err):
		return false
	case err != nil:
		m.fleet.log.Error(err, "Cannot write the condition of a member; trying again", "member", m.name)
		return false
	}
	m.cluster = written
	if !news || m.found.reason == "" {
		return true
	}
	kind := corev1.EventTypeWarning
	if m.found.reason == v1alpha1.ReasonReachable {
		kind = corev1.EventTypeNormal
	}
	// +event:object=MemberCluster
	// +event:reason=the reason of the condition Reachable
	// +event:type=Warning if the condition is not True, else Normal
	// +event:message=the message of the condition
	m.fleet.recorder.Eventf(written, nil, kind, m.found.reason, "Connect", "%s", bounded.Text(m.found.message, maxNote))
	return true
}

// disconnect ends all connections to the member.
func (m *member) disconnect() {
	m.runs.cancelAll()
	if m.way != nil {
		m.way.end() // runners keep theirs until they return
	}
	m.way, m.probes.tried, m.probes.failures = nil, nil, 0
}
