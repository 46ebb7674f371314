package memberpolicy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/definition"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	// requestTimeout limits each request except watches.
	requestTimeout = 10 * time.Second
	// firstObservation is how long the agent waits for the first observation before it reports that the rules are unknown.
	firstObservation = 10 * time.Second
	// absentInterval is the interval of retries while the member does not serve MemberPolicies.
	absentInterval = 15 * time.Second
	// watchTimeout is the duration of one watch. Afterwards, the policies are listed again.
	watchTimeout = 5 * time.Minute
	firstRetry   = time.Second
	lastRetry    = 30 * time.Second
)

// Options configure a Watcher.
type Options struct {
	// Member is the client configuration for the member. Required.
	Member *rest.Config
	// Required means that a member without a MemberPolicy accepts nothing, also if it does not serve the kind. Default
	// false: such a member accepts everything.
	Required bool
	// Log is the logger. Default: no logs.
	Log logr.Logger
}

// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=memberpolicies,verbs=list;watch

// A Watcher observes the MemberPolicies of a member. Its methods are safe for concurrent use.
//
// A Watcher fails closed: until it has observed the policies, and while it has no permission to, nothing is accepted.
// If the member becomes unreachable later, the last observed policies stay in force. A member that does not serve the
// kind has no policy.
type Watcher struct {
	options   Options
	client    client.WithWatch
	discovery discovery.DiscoveryInterface

	mu       sync.Mutex
	rules    *Rules // nil: not observed yet
	version  int
	err      error // error of the last attempt
	changed  chan struct{}
	deadline time.Time // deadline of the first observation
}

// NewWatcher returns a Watcher. The Watcher sends no request before it is started.
func NewWatcher(o Options) (*Watcher, error) {
	if o.Member == nil {
		return nil, errors.New("memberpolicy.Options.Member: is required")
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The static mapper avoids discovery requests to the member.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("MemberPolicy"), meta.RESTScopeRoot)
	c, err := client.NewWithWatch(o.Member, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("create the client of MemberPolicies: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(o.Member)
	if err != nil {
		return nil, fmt.Errorf("create the client of MemberPolicies: %w", err)
	}
	return &Watcher{
		options: o, client: c, discovery: d, changed: make(chan struct{}), deadline: time.Now().Add(firstObservation),
	}, nil
}

// Start observes the policies until the context ends, and returns nil. It can be added to a manager.
func (w *Watcher) Start(ctx context.Context) error {
	w.mu.Lock()
	w.deadline = time.Now().Add(firstObservation)
	w.mu.Unlock()
	retry := firstRetry
	for ctx.Err() == nil {
		version, err := w.list(ctx)
		switch {
		case errors.Is(err, errAbsent):
			retry = firstRetry
			sleep(ctx, absentInterval)
		case err != nil:
			w.failed(ctx, err)
			sleep(ctx, retry)
			retry = min(2*retry, lastRetry)
		default:
			retry = firstRetry
			if err := w.untilChange(ctx, version); err != nil {
				w.options.Log.Info("Watch of MemberPolicies failed; retrying", "error", err.Error())
				sleep(ctx, firstRetry)
			}
		}
	}
	return nil
}

// sleep waits for d plus jitter of up to a quarter of d, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d + rand.N(d/4))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// errAbsent is the error for a member that does not serve MemberPolicies.
var errAbsent = errors.New("the member does not serve MemberPolicies")

// list lists the policies, and returns the resourceVersion to watch from.
func (w *Watcher) list(ctx context.Context) (string, error) {
	list := &v1alpha1.MemberPolicyList{}
	err := bounded(ctx, func(ctx context.Context) error { return w.client.List(ctx, list) })
	switch {
	case err == nil:
		w.observed(list.Items)
		return list.ResourceVersion, nil
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return "", err
	}
	// An API server checks permissions before it detects that it does not serve a kind. An API server that has restarted
	// recently may not serve the kind yet. So the observed policies stay in force until a second check.
	for range 2 {
		state, stateErr := w.state(ctx)
		if stateErr != nil {
			return "", errors.Join(err, stateErr)
		}
		if state != definition.Absent {
			return "", err
		}
		if w.policies() == 0 {
			break
		}
		sleep(ctx, definition.ConfirmAfter)
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	w.observed(nil)
	return "", errAbsent
}

func (w *Watcher) state(ctx context.Context) (state definition.State, err error) {
	err = bounded(ctx, func(ctx context.Context) (err error) {
		state, err = definition.Of(ctx, w.discovery, v1alpha1.GroupVersion.WithResource("memberpolicies"))
		return err
	})
	return state, err
}

func bounded(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return do(ctx)
}

// untilChange returns when a policy may have changed, at the latest after watchTimeout.
func (w *Watcher) untilChange(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout+requestTimeout)
	defer cancel()
	seconds := int64(watchTimeout.Seconds())
	events, err := w.client.Watch(ctx, &v1alpha1.MemberPolicyList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds},
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	if event := <-events.ResultChan(); event.Type == watch.Error {
		if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
	return nil
}

func (w *Watcher) policies() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rules == nil {
		return 0
	}
	return len(w.rules.policies)
}

func (w *Watcher) observed(policies []v1alpha1.MemberPolicy) {
	rules := NewRules(policies, w.options.Required)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = nil
	if w.rules != nil && slices.EqualFunc(w.rules.policies, rules.policies, func(a, b v1alpha1.MemberPolicy) bool {
		return a.UID == b.UID && a.Generation == b.Generation
	}) {
		return
	}
	if w.rules != nil || len(policies) > 0 {
		w.options.Log.Info("MemberPolicies changed", "policies", len(policies), "restricted", rules.Restricted())
	}
	w.rules = rules
	w.version++
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *Watcher) failed(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && (w.err == nil || w.err.Error() != err.Error()) {
		w.options.Log.Info("Failed to read MemberPolicies; retrying", "error", err.Error())
	}
	w.err = err
}

// Current returns the rules in force. It waits for the first observation, until ten seconds after Start. An error means
// that the rules are unknown.
func (w *Watcher) Current(ctx context.Context) (*Rules, error) {
	rules, _, err := w.current(ctx)
	return rules, err
}

func (w *Watcher) current(ctx context.Context) (*Rules, string, error) {
	for {
		w.mu.Lock()
		rules, version, err, changed, deadline := w.rules, w.version, w.err, w.changed, w.deadline
		w.mu.Unlock()
		if rules != nil {
			return rules, strconv.Itoa(version), nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			if err == nil {
				err = errors.New("the member has not responded yet")
			}
			return nil, "", fmt.Errorf("read the MemberPolicies of the member: %w", err)
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, "", ctx.Err()
		}
		timer.Stop()
	}
}

// Report calls a function with the summary for a hub, after the first observation and after each change, until the
// context ends. hub is the name as in ForHub.
func (w *Watcher) Report(ctx context.Context, hub string, report func(*membershipv1alpha1.MemberPolicySummary)) {
	for {
		w.mu.Lock()
		rules, changed := w.rules, w.changed
		w.mu.Unlock()
		if rules != nil {
			report(rules.Summary(hub))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Changed returns a channel that is closed at the next change of the rules.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// ForHub returns the policy of the member for one hub, as an ObjectPolicy of package work/agent. name is the value of
// the label work.muster.dev/hub.
func (w *Watcher) ForHub(name string) *HubPolicy { return &HubPolicy{watcher: w, hub: name} }

// A HubPolicy decides which objects the member accepts from one hub.
type HubPolicy struct {
	watcher *Watcher
	hub     string
}

// Rules implements ObjectPolicy of package work/agent.
func (p *HubPolicy) Rules(ctx context.Context,
	work *workv1alpha1.Work) (func(workv1alpha1.ResourceIdentifier) string, string, error) {
	rules, version, err := p.watcher.current(ctx)
	if err != nil {
		return nil, "", err
	}
	request := Request{Hub: p.hub, Executor: work.Spec.Executor, Addon: work.Labels[addonv1alpha1.AddonLabel]}
	return func(object workv1alpha1.ResourceIdentifier) string {
		request := request
		request.Object = object
		return rules.Reject(request)
	}, version, nil
}

// Changed implements ObjectPolicy of package work/agent.
func (p *HubPolicy) Changed() <-chan struct{} { return p.watcher.Changed() }
