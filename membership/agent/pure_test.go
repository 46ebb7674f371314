package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func container(pairs ...string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func sidecar(pairs ...string) corev1.Container {
	c := container(pairs...)
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func TestRequests(t *testing.T) {
	for _, tc := range []struct {
		reason string
		pod    corev1.PodSpec
		want   corev1.ResourceList
	}{
		{"containers without requests", corev1.PodSpec{Containers: []corev1.Container{{}}}, list()},
		{"the requests of containers are added",
			corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1"), container("cpu", "500m", "memory", "1Gi")}},
			list("cpu", "1500m", "memory", "1Gi")},
		{"the largest init container applies if it exceeds the containers", corev1.PodSpec{
			InitContainers: []corev1.Container{container("cpu", "2"), container("cpu", "3")},
			Containers:     []corev1.Container{container("cpu", "1")},
		}, list("cpu", "3")},
		{"a sidecar is added to the containers", corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("cpu", "1")}, Containers: []corev1.Container{container("cpu", "1")},
		}, list("cpu", "2")},
		{"an init container is added to the sidecars before it only", corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("cpu", "1"), container("cpu", "4"), sidecar("cpu", "1")},
			Containers:     []corev1.Container{container("cpu", "1")},
		}, list("cpu", "5")},
		{"requests of the pod override those of its containers", corev1.PodSpec{
			Resources:  &corev1.ResourceRequirements{Requests: list("cpu", "3")},
			Containers: []corev1.Container{container("cpu", "1", "memory", "1Gi")},
		}, list("cpu", "3", "memory", "1Gi")},
		{"overhead is added",
			corev1.PodSpec{Overhead: list("cpu", "100m"), Containers: []corev1.Container{container("cpu", "1")}},
			list("cpu", "1100m")},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, requests(&tc.pod)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func node(name string, ready corev1.ConditionStatus, allocatable corev1.ResourceList) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Capacity: allocatable, Allocatable: allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		},
	}
}

func pod(node, cpu string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container("cpu", cpu)}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestTally_Sum(t *testing.T) {
	cordoned := node("cordoned", corev1.ConditionTrue, list("cpu", "8", "pods", "10"))
	cordoned.Spec.Unschedulable = true
	withoutConditions := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mute"},
		Status: corev1.NodeStatus{Allocatable: list("cpu", "8")}}
	sum := newTally()
	for _, n := range []*corev1.Node{
		node("a", corev1.ConditionTrue, list("cpu", "4", "pods", "10")),
		node("b", corev1.ConditionTrue, list("cpu", "2", "pods", "10")),
		node("down", corev1.ConditionUnknown, list("cpu", "8", "pods", "10")), cordoned, withoutConditions,
	} {
		sum.addNode(n)
	}
	for _, p := range []*corev1.Pod{
		pod("a", "1", corev1.PodRunning),
		pod("a", "1", corev1.PodSucceeded),  // completed
		pod("b", "3", corev1.PodPending),    // more than node b has: node b has nothing left, and node a is not affected
		pod("down", "1", corev1.PodRunning), // on a node that is not ready
		pod("", "1", corev1.PodPending),     // not scheduled
		pod("gone", "1", corev1.PodRunning), // on a deleted node
	} {
		sum.addPod(p)
	}
	want := &v1alpha1.ResourceUsage{
		Capacity: list("cpu", "22", "pods", "40"), Allocatable: list("cpu", "6", "pods", "20"),
		Available: list("cpu", "3", "pods", "18"),
	}
	if diff := cmp.Diff(want, sum.sum()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	require.Equal(t, 5, sum.nodes)
}

func TestBounded_Properties(t *testing.T) {
	var many []v1alpha1.Property
	for i := range 130 {
		many = append(many, v1alpha1.Property{Name: fmt.Sprintf("example.com/p%03d", 129-i), Value: "x"})
	}
	long := strings.Repeat("ä", maxPropertyValue)
	for _, tc := range []struct {
		reason     string
		properties []v1alpha1.Property
		failed     []string
		want       []v1alpha1.Property
		condition  string
	}{
		{"all properties are within the limits", []v1alpha1.Property{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
			"True Collected All properties were collected."},
		{"the first of two properties with one name is reported",
			[]v1alpha1.Property{{Name: "a", Value: "built in"}, {Name: "a", Value: "forged"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "built in"}}, "True Collected All properties were collected."},
		{"more properties than the API accepts are truncated", many, nil,
			nil, "False Truncated The limit of a Membership is 128 properties; the last 2 in order of their names are omitted."},
		{"a long value is cut to 1024 characters",
			[]v1alpha1.Property{{Name: "a", Value: long + "!"}, {Name: "b", Value: long}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: long}, {Name: "b", Value: long}},
			"False Truncated Value cut to 1024 characters: a."},
		{"invalid UTF-8 is replaced", []v1alpha1.Property{{Name: "a", Value: "\xff"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "\uFFFD"}}, "True Collected All properties were collected."},
		{"properties with invalid names are omitted",
			[]v1alpha1.Property{{Name: "", Value: "x"}, {Name: "a b", Value: "x"}}, nil,
			nil, `False Truncated Omitted, because the name is not a qualified name: "", "a b".`},
		{"failed collectors determine the reason", []v1alpha1.Property{{Name: "", Value: "x"}}, []string{"z", "region"},
			nil, `False CollectorFailed Collectors that failed or took too long, see the agent's log: region, z. Omitted, ` +
				`because the name is not a qualified name: "".`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := problems{failed: tc.failed}
			got := bounded(tc.properties, &p)
			if len(tc.properties) > maxProperties {
				require.Len(t, got, maxProperties)
				require.Equal(t, "example.com/p127", got[127].Name)
			} else if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			c := p.condition()
			require.Equal(t, tc.condition, fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
		})
	}
}

func TestHealth_Probes(t *testing.T) {
	bad := errors.New("etcd is away")
	for _, tc := range []struct {
		reason string
		probes string // '+' and '-'
		want   string
	}{
		{"no probe", "", "?"},
		{"the first probe succeeds", "+", "+"},
		{"the first probe fails", "-", "-"},
		{"two failures after a success", "+--", "+"},
		{"three failures after a success", "+---", "-"},
		{"a success resets the number of failures", "+--+--", "+"},
		{"one success after three failures", "+---+", "-"},
		{"two successes after three failures", "+---++", "+"},
		{"a failure resets the number of successes", "---+-+", "-"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var h health
			for _, probe := range tc.probes {
				if probe == '+' {
					h = h.probed(nil)
				} else {
					h = h.probed(bad)
				}
			}
			got := "?"
			switch {
			case h.known && h.healthy:
				got = "+"
			case h.known:
				got = "-"
				require.Contains(t, h.condition().Message, "etcd is away")
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// TestRenewAt checks the times of the package documentation: between 60 and 75 % of the lifetime for every claim, and
// not the same for all claims.
func TestRenewAt(t *testing.T) {
	seen := map[time.Time]bool{}
	rapid.Check(t, func(t *rapid.T) {
		claim := rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "claim")
		lifetime := time.Duration(rapid.Int64Range(1, int64(365*24*time.Hour)).Draw(t, "lifetime"))
		c := credential{Since: noon, Lifetime: lifetime}
		share := float64(c.renewAt(claim).Sub(noon)) / float64(lifetime)
		if lifetime > time.Minute && (share < 0.599 || share > 0.751) {
			t.Fatalf("renewed at %v of the lifetime", share)
		}
		if !c.renewAt(claim).Equal(c.renewAt(claim)) {
			t.Fatal("renewAt is not deterministic")
		}
		seen[credential{Since: noon, Lifetime: time.Hour}.renewAt(claim)] = true
	})
	require.Greater(t, len(seen), 10, "members that joined together renew at different times")
	require.Zero(t, credential{Since: noon}.renewAt("abc"), "a credential without an end is not renewed")
}

func TestDue(t *testing.T) {
	now := time.Now()
	require.Equal(t, now.Add(time.Hour), due(now.Add(time.Hour), now))
	require.Zero(t, due(time.Time{}, now))
	require.Equal(t, now, due(now.Add(-time.Second).Round(0), now),
		"the wall clock applies, which continues while the machine is suspended")
}

func TestIssued(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { m := metav1.NewTime(noon.Add(d)); return &m }
	for _, tc := range []struct {
		reason string
		answer v1alpha1.Credential
		want   time.Duration
	}{
		{"the lifetime is computed with the clock of the hub",
			v1alpha1.Credential{IssuedAt: at(-100 * time.Hour), ExpirationTime: at(-99 * time.Hour)}, time.Hour},
		{"without IssuedAt, the lifetime is computed with the clock of the agent",
			v1alpha1.Credential{ExpirationTime: at(2 * time.Hour)}, 2 * time.Hour},
		{"without an expiration time, the credential does not end", v1alpha1.Credential{IssuedAt: at(0)}, 0},
		{"a negative lifetime is unknown",
			v1alpha1.Credential{IssuedAt: at(time.Hour), ExpirationTime: at(0)}, unknownLife},
		{"an expiration time before the clock of the agent: the lifetime is unknown",
			v1alpha1.Credential{ExpirationTime: at(-time.Hour)}, unknownLife},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := issued(registration.Material{Token: "t"}, tc.answer, noon.Add(-time.Minute), noon)
			require.Equal(t, credential{Token: "t", Since: noon.Add(-time.Minute), Lifetime: tc.want}, got)
		})
	}
}

// TestJitter checks that an event of all agents at the same time does not make all of them send requests at the same
// time.
func TestJitter(t *testing.T) {
	pauses := func(random float64) (all []time.Duration) {
		b := backoff{random: func() float64 { return random }}
		for range 7 {
			all = append(all, b.next())
		}
		return all
	}
	s := time.Second
	require.Equal(t, []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 15 * s, 15 * s}, pauses(0))
	require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}, pauses(0.5))

	a := &agent{random: func() float64 { return 0.75 }}
	for _, action := range []lifecycle.AgentAction{lifecycle.CheckJoinRequest, lifecycle.ReadMembership} {
		require.Equal(t, 5*s/2, a.pause(lifecycle.AgentStep{Actions: []lifecycle.AgentAction{action}, After: 2 * s}), action)
	}
	require.Equal(t, 2*s, a.pause(lifecycle.AgentStep{After: 2 * s}), "a step without a request to the hub has no jitter")
	require.Equal(t, longest, a.pause(lifecycle.AgentStep{After: 24 * time.Hour}))
}

func TestShort(t *testing.T) {
	require.Equal(t, "short text", short("short text"))
	for _, note := range []string{strings.Repeat("x", 1025), strings.Repeat("ä", 1000), "x" + strings.Repeat("ä", 1000),
		"x" + strings.Repeat("漢", 1000)} {
		got := short(note)
		require.True(t, utf8.ValidString(got), "%q", got[len(got)-4:])
		require.LessOrEqual(t, len(got), 1024)
		require.Greater(t, len(got), 1020)
	}
}

// TestMetrics_TwoHubs checks that two agents of one cluster, each of another hub, have separate series, and that
// neither removes those of the other.
func TestMetrics_TwoHubs(t *testing.T) {
	r := record{Name: "two-hubs"}
	var both [2]*metrics
	for i, hub := range []string{"https://a", "https://b"} {
		m, err := newMetrics()
		require.NoError(t, err)
		m.set(hub, lifecycle.Registering, r)
		m.set(hub, lifecycle.Joined, r)
		m.beat(heartbeat.Status{Failures: i})
		both[i] = m
	}
	series := func() (all []string) {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.Metric {
				line := fmt.Sprint(family.GetName(), " ", m.GetLabel(), " ", m.GetGauge().GetValue())
				if strings.Contains(line, "two-hubs") && !strings.Contains(line, "timestamp") {
					all = append(all, strings.Join(strings.FieldsFunc(line, func(r rune) bool {
						return strings.ContainsRune(`" :`, r)
					}), " "))
				}
			}
		}
		return all
	}
	require.Len(t, series(), 4, "%v", series())
	both[0].forget()
	left := series()
	require.Len(t, left, 2, "%v", left)
	require.Contains(t, left[0], "//b")
	both[1].forget()
	require.Empty(t, series())
}

func TestRecord_Marshal(t *testing.T) {
	r := record{ClusterID: "id", Name: "east", claimKeys: claimKeys{ClaimKey: []byte("key")},
		Request: &recordedRequest{Private: []byte("p"), MadeAt: noon}}
	data, err := r.marshal()
	require.NoError(t, err)
	r.Version = recordVersion
	got, err := parseRecord(data)
	require.NoError(t, err)
	if diff := cmp.Diff(r, got, cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", r, r, r, r), "key", "a record is a secret")
	flat, err := record{claimKeys: claimKeys{ClaimKey: []byte("key")}, hubTurn: hubTurn{Turn: 2, Stay: true},
		removalProgress: removalProgress{Deregistered: true, Kept: true, Out: true}}.marshal()
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"clusterID":"","name":"","claimKey":"a2V5","deregistered":true,"kept":true,`+
		`"out":true,"turn":2,"stay":true}`, string(flat), "the format of earlier versions")
	for _, invalid := range []string{`{"version":2}`, `{}`, `no JSON`} {
		_, err := parseRecord([]byte(invalid))
		require.ErrorIs(t, err, errRecord, invalid)
	}
	empty, err := parseRecord(nil)
	require.NoError(t, err)
	require.Equal(t, record{}, empty)
}

func TestReport_Applied(t *testing.T) {
	before := v1alpha1.MembershipStatus{Agents: []v1alpha1.AgentStatus{{Type: "Work"}}}
	r := report{claim: "me", joined: joinedCondition, member: &memberReport{
		agentVersion: "v1", health: health{}.probed(nil),
		facts: facts{version: "v1.36.0", resources: &v1alpha1.ResourceUsage{Capacity: list("cpu", "1000m")},
			properties: property("a", "1")},
	}}
	first, changed := r.applied(before, noon)
	require.True(t, changed)
	require.Equal(t, lifecycle.ReportedJoined, reported(first, "me"))
	require.Equal(t, lifecycle.ReportedNothing, reported(first, "another"), "an agent that took over has not reported yet")
	require.Equal(t, "Work", first.Agents[0].Type, "entries of other agents are kept")
	require.True(t, meta.IsStatusConditionTrue(first.Agents[1].Conditions, v1alpha1.ConditionHealthy))
	require.Len(t, before.Agents, 1, "the argument is not changed")

	r.member.facts.resources = &v1alpha1.ResourceUsage{Capacity: list("cpu", "1")}
	_, changed = r.applied(first, noon.Add(time.Hour))
	require.False(t, changed, "the same quantity in another notation is no change")

	r.member.companions = []companionReport{{"works", metav1.Condition{Type: v1alpha1.ConditionHealthy,
		Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCompanionFailed, Message: "No luck."}}}
	failing, changed := r.applied(first, noon)
	require.True(t, changed)
	require.Len(t, failing.Agents, 3)
	require.Equal(t, "works", failing.Agents[2].Type)
	require.True(t, meta.IsStatusConditionFalse(failing.Agents[2].Conditions, v1alpha1.ConditionHealthy))
	require.True(t, meta.IsStatusConditionTrue(failing.Agents[1].Conditions, v1alpha1.ConditionHealthy),
		"the agent itself is healthy")
	r.member.companions = nil
	without, _ := r.applied(failing, noon)
	require.Equal(t, first.Agents, without.Agents, "only the entry of the removed companion is removed")

	r.member.orphans = &v1alpha1.OrphanSummary{}
	_, changed = r.applied(first, noon)
	require.False(t, changed, "a member without orphaned objects writes nothing")
	r.member.orphans = &v1alpha1.OrphanSummary{Objects: 2, Works: 1, WorkNames: []string{"shop"}}
	orphaned, _ := r.applied(first, noon)
	require.Equal(t, r.member.orphans, orphaned.Orphans)
	r.member.orphans = nil
	_, changed = r.applied(orphaned, noon)
	require.False(t, changed, "an agent that was just started keeps the former report")
	r.claim = "another"
	taken, _ := r.applied(orphaned, noon)
	require.Nil(t, taken.Orphans)
	r.claim, r.member.orphans = "me", &v1alpha1.OrphanSummary{}
	adopted, _ := r.applied(orphaned, noon)
	require.Nil(t, adopted.Orphans)

	r.member.refused = "No."
	refused, changed := r.applied(first, noon.Add(time.Hour))
	require.True(t, changed)
	c := meta.FindStatusCondition(refused.Conditions, v1alpha1.ConditionCredentialValid)
	require.Equal(t, "No.", c.Message)
	require.Equal(t, metav1.ConditionFalse, c.Status)
	require.True(t, c.LastTransitionTime.Equal(&metav1.Time{Time: noon.Add(time.Hour)}))

	cleaning, _ := report{claim: "me", joined: cleaningCondition, remaining: []string{"work/a"}}.applied(first, noon)
	require.Equal(t, lifecycle.ReportedJoined, reported(cleaning, "me"),
		"an agent that is cleaning up is not reported as clean")
	require.Equal(t, first.Version, cleaning.Version)
	clean, _ := report{claim: "me", joined: cleanedCondition}.applied(cleaning, noon)
	require.Equal(t, lifecycle.ReportedClean, reported(clean, "me"))
	require.Empty(t, clean.Remaining)
}

// TestReport_MemberDoesNotRespond checks that an agent that was started recently, and whose member does not
// respond, keeps the earlier report.
func TestReport_MemberDoesNotRespond(t *testing.T) {
	existing := v1alpha1.MembershipStatus{
		Claim: "me", Version: v1alpha1.VersionInfo{Kubernetes: "v1.36.0", Agent: "v1"},
		Resources:  v1alpha1.ResourceUsage{Capacity: list("cpu", "1")},
		Properties: slices.Concat(property("region", "eu"), property("zone", "a")),
	}
	emit := func(claim string, f facts) v1alpha1.MembershipStatus {
		published, _ := report{claim: claim, joined: joinedCondition,
			member: &memberReport{agentVersion: "v2", facts: f}}.applied(existing, noon)
		return published
	}
	nothing := emit("me", facts{partial: true})
	require.Equal(t, v1alpha1.VersionInfo{Kubernetes: "v1.36.0", Agent: "v2"}, nothing.Version)
	require.Equal(t, existing.Resources, nothing.Resources)
	require.Equal(t, existing.Properties, nothing.Properties)

	some := emit("me", facts{partial: true, properties: property("zone", "b")})
	require.Equal(t, slices.Concat(property("region", "eu"), property("zone", "b")), some.Properties,
		"new results apply, and the other sources have not responded")

	all := emit("me", facts{version: "v1.37.0", resources: &v1alpha1.ResourceUsage{}, properties: property("zone", "b")})
	require.Equal(t, property("zone", "b"), all.Properties, "all sources have responded: missing properties are removed")
	require.Equal(t, "v1.37.0", all.Version.Kubernetes)
	require.Empty(t, all.Resources.Capacity)

	apis := func(names ...string) []v1alpha1.ServedAPIs {
		return []v1alpha1.ServedAPIs{{GroupVersion: "v1", Kinds: names}}
	}
	existing.APIs = apis("Pod")
	require.Empty(t, emit("me", facts{}).APIs, "without the option, the APIs are removed")
	require.Equal(t, apis("Pod"), emit("me", facts{apis: servedAPIs{reported: true}}).APIs)
	require.Equal(t, apis("Node"), emit("me", facts{apis: servedAPIs{reported: true, known: true,
		all: apis("Node")}}).APIs)
	require.Empty(t, emit("another", facts{apis: servedAPIs{reported: true}}).APIs)

	other := emit("another", facts{partial: true})
	require.Empty(t, other.Properties, "the report of another agent is not kept")
	require.Empty(t, other.Version.Kubernetes)
}

func TestRenewalState(t *testing.T) {
	recorded := &renewalRequest{ID: "1"}
	sent := &v1alpha1.Renewal{ID: "1"}
	for _, tc := range []struct {
		reason   string
		recorded *renewalRequest
		sent     *v1alpha1.Renewal
		answer   *v1alpha1.RenewalAnswer
		want     lifecycle.RenewalState
	}{
		{"no renewal is requested", nil, nil, nil, lifecycle.RenewalNone},
		{"a renewal is recorded and not sent, because of a crash", recorded, nil, nil, lifecycle.RenewalNone},
		{"an older renewal was sent", recorded, &v1alpha1.Renewal{ID: "0"}, &v1alpha1.RenewalAnswer{ID: "0", Refused: "No."},
			lifecycle.RenewalNone},
		{"the renewal is sent", recorded, sent, nil, lifecycle.RenewalAsked},
		{"an older renewal is answered", recorded, sent, &v1alpha1.RenewalAnswer{ID: "0", Credential: &v1alpha1.Credential{}},
			lifecycle.RenewalAsked},
		{"the renewal is answered", recorded, sent, &v1alpha1.RenewalAnswer{ID: "1", Credential: &v1alpha1.Credential{}},
			lifecycle.RenewalAnswered},
		{"the renewal is refused",
			recorded, sent, &v1alpha1.RenewalAnswer{ID: "1", Refused: "No."}, lifecycle.RenewalRefused},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{Renewal: tc.answer},
				Status: v1alpha1.MembershipStatus{Renewal: tc.sent}}
			require.Equal(t, tc.want, renewalState(tc.recorded, m))
		})
	}
	require.Equal(t, noon.Add(time.Minute), askAgainAt(noon, 9*time.Minute))
	require.Equal(t, noon.Add(time.Hour), askAgainAt(noon, 10*time.Hour))
}

func TestRequestState(t *testing.T) {
	answer := func(answer v1alpha1.JoinAnswer, reason string, change func(*v1alpha1.JoinRequest)) *v1alpha1.JoinRequest {
		r := &v1alpha1.JoinRequest{Status: v1alpha1.JoinRequestStatus{
			Answer: answer, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionIssued, Reason: reason,
				Message: "Because."}},
		}}
		r.Spec.MemberUID, r.Spec.Credential.PublicKey, r.Spec.Token = "uid", []byte("key"), &v1alpha1.TokenProof{Name: "t"}
		if change != nil {
			change(r)
		}
		return r
	}
	request := answer("", "", nil)
	member := record{Member: &registered{UID: "uid"}}
	otherToken := func(r *v1alpha1.JoinRequest) { r.Spec.Token = &v1alpha1.TokenProof{Name: "old"} }
	for _, tc := range []struct {
		reason   string
		record   record
		answered *v1alpha1.JoinRequest
		want     lifecycle.JoinRequestState
	}{
		{"no answer", member, answer("", "", nil), lifecycle.JoinRequestPending},
		{"answer Held", member, answer(v1alpha1.AnswerHeld, v1alpha1.ReasonClusterIDTaken, nil), lifecycle.JoinRequestHeld},
		{"answer Denied", member, answer(v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, nil), lifecycle.JoinRequestDenied},
		{"answer Denied because of the agent's current token",
			record{}, answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, nil),
			lifecycle.JoinRequestDenied},
		{"answer Denied because of a former token: the agent starts over", record{},
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, otherToken), lifecycle.JoinRequestDeregisteredKept},
		{"answer Denied because of a former token: a registered agent keeps its claim", member,
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, otherToken), lifecycle.JoinRequestDenied},
		{"answer Denied for another reason: the agent keeps its claim", record{},
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, otherToken), lifecycle.JoinRequestDenied},
		{"answer Deregistered", member, answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered, nil),
			lifecycle.JoinRequestDeregistered},
		{"answer Deregistered, and the MemberCluster is kept",
			member, answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered,
				func(r *v1alpha1.JoinRequest) { r.Status.MemberUID = "uid" }), lifecycle.JoinRequestDeregisteredKept},
		{"answer Deregistered to another request with the same claim", member,
			answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered,
				func(r *v1alpha1.JoinRequest) { r.Spec.MemberUID = "" }), lifecycle.JoinRequestDeregistered},
		{"answer Issued", member, answer(v1alpha1.AnswerIssued, "", nil), lifecycle.JoinRequestIssued},
		{"answer Issued, encrypted for a former key", member, answer(v1alpha1.AnswerIssued, "",
			func(r *v1alpha1.JoinRequest) { r.Spec.Credential.PublicKey = []byte("old") }), lifecycle.JoinRequestHeld},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, _ := requestState(tc.record, nil, request, tc.answered)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRequestReason(t *testing.T) {
	answer := func(status metav1.ConditionStatus, reason string) *v1alpha1.JoinRequest {
		return &v1alpha1.JoinRequest{Status: v1alpha1.JoinRequestStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionIssued, Status: status, Reason: reason}}}}
	}
	for _, test := range []struct {
		reason   string
		state    lifecycle.JoinRequestState
		answered *v1alpha1.JoinRequest
		want     string
	}{
		{"the hub has not answered", lifecycle.JoinRequestPending, &v1alpha1.JoinRequest{}, ""},
		{"the credential is being issued",
			lifecycle.JoinRequestPending, answer(metav1.ConditionFalse, v1alpha1.ReasonIssuing), ""},
		{"the hub cannot issue", lifecycle.JoinRequestPending, answer(metav1.ConditionFalse, v1alpha1.ReasonIssueFailed),
			v1alpha1.ReasonIssueFailed},
		{"an administrator must decide", lifecycle.JoinRequestHeld,
			answer(metav1.ConditionFalse, v1alpha1.ReasonWaitingForAcceptance),
			v1alpha1.ReasonWaitingForAcceptance},
		{"the credential was issued for an older request",
			lifecycle.JoinRequestHeld, answer(metav1.ConditionTrue, "Issued"), ""},
		{"the hub is unreachable", lifecycle.JoinRequestUnreachable, nil, "HubUnreachable"},
		{"the bootstrap credential is refused", lifecycle.JoinRequestRefused, nil, "BootstrapRefused"},
		{"no bootstrap credential", lifecycle.JoinRequestNoCredential, nil, "BootstrapMissing"},
		{"the request is denied with a reason", lifecycle.JoinRequestDenied, answer(metav1.ConditionFalse,
			v1alpha1.ReasonTokenRefused),
			v1alpha1.ReasonTokenRefused},
		{"the request cannot be created for a local reason", lifecycle.JoinRequestNotAskable, nil, ""},
	} {
		require.Equal(t, test.want, requestReason(test.state, test.answered), test.reason)
	}
}

func TestHubStateOf(t *testing.T) {
	gr := schema.GroupResource{Group: v1alpha1.GroupName, Resource: memberships}
	existing := &v1alpha1.MembershipList{Items: []v1alpha1.Membership{{Spec: v1alpha1.MembershipSpec{MemberUID: "uid"}}}}
	for _, tc := range []struct {
		reason string
		list   *v1alpha1.MembershipList
		err    error
		want   lifecycle.HubState
	}{
		{"the Membership exists", existing, nil, lifecycle.HubSeen},
		{"no Membership", &v1alpha1.MembershipList{}, nil, lifecycle.HubGone},
		{"the Membership of another member",
			&v1alpha1.MembershipList{Items: []v1alpha1.Membership{{Spec: v1alpha1.MembershipSpec{MemberUID: "new"}}}}, nil,
			lifecycle.HubOther},
		{"forbidden", nil, apierrors.NewForbidden(gr, "self", nil), lifecycle.HubRefused},
		{"unauthorized", nil, apierrors.NewUnauthorized("no"), lifecycle.HubRefused},
		{"the kind is not found, as on a starting hub", nil, apierrors.NewNotFound(gr, ""),
			lifecycle.HubUnreachable},
		{"no connection", nil, errors.New("refused"), lifecycle.HubUnreachable},
		{"too many requests", nil, apierrors.NewTooManyRequestsError("later"), lifecycle.HubUnreachable},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, hubStateOf(tc.list, tc.err, registered{UID: "uid"}).state)
		})
	}
}

func TestDefaultName(t *testing.T) {
	require.Equal(t, "cluster-7fc05d1e", defaultName("7fc05d1e-6a0e-4a3e-b7a3-000000000000"))
	require.Equal(t, "cluster-a-b-c-1", defaultName("A.b:C_1_x"))
	require.Equal(t, "cluster-x", defaultName("x"))
}

func TestOptions_Validate(t *testing.T) {
	named := func(names ...string) (out []PropertyCollector) {
		for _, name := range names {
			out = append(out, CollectorFunc(name, nil))
		}
		return out
	}
	gates := func(names ...string) (out []membership.LeaveGate) {
		for _, name := range names {
			out = append(out, membership.GateFunc(name, nil))
		}
		return out
	}
	companions := func(names ...string) (out []Companion) {
		for _, name := range names {
			out = append(out, CompanionFunc(name, nil))
		}
		return out
	}
	for _, tc := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"zero options are valid", Options{}, ""},
		{"an invalid name", Options{Name: "East"}, "Name: "},
		{"a cluster ID in the form of an ARN", Options{ClusterID: "arn:aws:eks:1:cluster.x"}, ""},
		{"a cluster ID with an invalid character", Options{ClusterID: "a b"}, "ClusterID: "},
		{"a version that is too long", Options{Version: strings.Repeat("v", 129)}, "Version: "},
		{"a label with a reserved prefix", Options{Labels: map[string]string{"kubernetes.io/x": ""}},
			`Labels["kubernetes.io/x"]`},
		{"a collector without a name", Options{Collectors: named("")}, "Collectors[0]: has no name"},
		{"two collectors with one name", Options{Collectors: named("a", "a")}, `Collectors[1]: has the name "a"`},
		{"a collector with the name of a built-in one",
			Options{Collectors: named(sourceVersion)}, `Collectors[0]: has the name "version"`},
		{"a nil collector", Options{Collectors: []PropertyCollector{nil}},
			"Collectors[0]: must not be nil"},
		{"a nil cleaner",
			Options{Cleaners: []membership.LeaveGate{nil}}, "Cleaners[0]: must not be nil"},
		{"a cleaner without a name", Options{Cleaners: gates("")}, "Cleaners[0]: has no name"},
		{"two cleaners with one name", Options{Cleaners: gates("a", "a")}, `Cleaners[1]: has the name "a"`},
		{"a nil companion", Options{Companions: []Companion{nil}}, "Companions[0]: must not be nil"},
		{"a companion without a name", Options{Companions: companions("")}, "Companions[0]: has no name"},
		{"two companions with one name", Options{Companions: companions("a", "a")}, `Companions[1]: has the name "a"`},
		{"a cleaner and a collector with one name are valid", Options{Cleaners: gates("a"), Collectors: named("a")}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.o.validate()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.ErrorAs(t, err, new(*membership.InvalidError))
		})
	}
}

func TestNew_RequiredOptions(t *testing.T) {
	complete := Options{
		Member: &rest.Config{Host: "https://member.example.com"}, Store: SecretStore(nil, "any"),
		Bootstrap: BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return nil, nil }),
	}
	_, err := New(complete)
	require.NoError(t, err)
	for field, change := range map[string]func(*Options){
		"Member":    func(o *Options) { o.Member = nil },
		"Bootstrap": func(o *Options) { o.Bootstrap = nil },
		"Store":     func(o *Options) { o.Store = nil },
		"Name":      func(o *Options) { o.Name = "Not A Name" },
	} {
		incomplete := complete
		change(&incomplete)
		_, err := New(incomplete)
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}

// TestRecord_PrintsNoSecret checks that a record that is printed by mistake shows no secret.
func TestRecord_PrintsNoSecret(t *testing.T) {
	r := record{Name: "east", claimKeys: claimKeys{ClaimKey: []byte("a secret key")},
		Member: &registered{Name: "east", Credential: credential{Token: "a secret token"}}}
	var out strings.Builder
	logger := funcr.New(func(prefix, args string) { out.WriteString(args) }, funcr.Options{})
	logger.Info("a record", "record", r, "pointer", &r)
	fmt.Fprintf(&out, "%v %+v %#v %s", r, r, r, &r)
	require.Contains(t, out.String(), "record of east")
	require.NotContains(t, out.String(), "secret")
	require.NotContains(t, out.String(), "97 32 115 101", "the key as a list of bytes")
}

func TestFacts_PartialUntilAllSourcesRespond(t *testing.T) {
	failure := errors.New("not now")
	c := &collection{log: logr.Discard(), news: func() {}, sources: []*source{
		{name: "a", timeout: time.Minute,
			collect: func(context.Context) (finding, error) { return finding{properties: property("a", "1")}, nil }},
		{name: "b", timeout: time.Minute, collect: func(context.Context) (finding, error) { return finding{}, failure }},
	}}
	require.True(t, c.facts().partial, "no source was called")
	c.round(t.Context())
	require.True(t, c.facts().partial)
	failure = nil
	c.round(t.Context())
	require.False(t, c.facts().partial)
	failure = errors.New("not any more")
	c.round(t.Context())
	require.False(t, c.facts().partial, "the former result of a source is kept")
}

// TestNextKeys checks when an agent replaces its claim key, and how many keys it keeps.
func TestNextKeys(t *testing.T) {
	var keys []laterKey
	var made []string
	for week := range maxKeys + 3 {
		now := noon.Add(time.Duration(week) * keyPeriod)
		next, err := nextKeys(keys, now)
		require.NoError(t, err)
		require.NotContains(t, made, string(next[0].Key), "each period has a new key")
		made = append(made, string(next[0].Key))
		require.Len(t, next, min(week+1, maxKeys))
		require.True(t, slices.EqualFunc(next[1:], keys[:len(next)-1],
			func(a, b laterKey) bool { return string(a.Key) == string(b.Key) }), "newest first")
		keys = next
		same, err := nextKeys(keys, now.Add(keyPeriod-1))
		require.NoError(t, err)
		require.Equal(t, keys, same)
	}
	r := record{claimKeys: claimKeys{Keys: keys}}
	parsed, err := r.laterKeys()
	require.NoError(t, err)
	require.Len(t, parsed, maxKeys)
	require.NotContains(t, fmt.Sprintf("%v %+v %s", r, r, r), "PRIVATE")
	r.Keys = append(r.Keys, laterKey{Key: []byte("a secret key")})
	_, err = r.laterKeys()
	require.ErrorIs(t, err, errRecord)
	require.NotContains(t, err.Error(), "secret")

	// A clock that was wrong must not keep a key forever.
	next, err := nextKeys([]laterKey{{Key: keys[0].Key, MadeAt: noon.AddDate(5, 0, 0)}}, noon)
	require.NoError(t, err)
	require.Len(t, next, 2)
}
