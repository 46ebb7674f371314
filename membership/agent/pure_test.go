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
		{"nothing asked, nothing taken", corev1.PodSpec{Containers: []corev1.Container{{}}}, list()},
		{"containers run together",
			corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1"), container("cpu", "500m", "memory", "1Gi")}},
			list("cpu", "1500m", "memory", "1Gi")},
		{"init containers run one by one, before the rest", corev1.PodSpec{
			InitContainers: []corev1.Container{container("cpu", "2"), container("cpu", "3")},
			Containers:     []corev1.Container{container("cpu", "1")},
		}, list("cpu", "3")},
		{"a sidecar runs on beside the containers", corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("cpu", "1")}, Containers: []corev1.Container{container("cpu", "1")},
		}, list("cpu", "2")},
		{"an init container runs beside the sidecars before it, not those after it", corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar("cpu", "1"), container("cpu", "4"), sidecar("cpu", "1")},
			Containers:     []corev1.Container{container("cpu", "1")},
		}, list("cpu", "5")},
		{"a pod's own requests go before those of its containers", corev1.PodSpec{
			Resources:  &corev1.ResourceRequirements{Requests: list("cpu", "3")},
			Containers: []corev1.Container{container("cpu", "1", "memory", "1Gi")},
		}, list("cpu", "3", "memory", "1Gi")},
		{"overhead comes on top",
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

func TestTally(t *testing.T) {
	cordoned := node("cordoned", corev1.ConditionTrue, list("cpu", "8", "pods", "10"))
	cordoned.Spec.Unschedulable = true
	mute := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mute"},
		Status: corev1.NodeStatus{Allocatable: list("cpu", "8")}}
	sum := newTally()
	for _, n := range []*corev1.Node{
		node("a", corev1.ConditionTrue, list("cpu", "4", "pods", "10")),
		node("b", corev1.ConditionTrue, list("cpu", "2", "pods", "10")),
		node("down", corev1.ConditionUnknown, list("cpu", "8", "pods", "10")), cordoned, mute,
	} {
		sum.addNode(n)
	}
	for _, p := range []*corev1.Pod{
		pod("a", "1", corev1.PodRunning),
		pod("a", "1", corev1.PodSucceeded),  // has given back what it took
		pod("b", "3", corev1.PodPending),    // more than b has: nothing is left there, and nothing is missing on a
		pod("down", "1", corev1.PodRunning), // on a node that does not count
		pod("", "1", corev1.PodPending),     // on no node yet
		pod("gone", "1", corev1.PodRunning), // on a node that was deleted meanwhile
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

func TestBounded(t *testing.T) {
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
		{"all is well", []v1alpha1.Property{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
			"True Collected All properties were collected."},
		{"the first collector has the name",
			[]v1alpha1.Property{{Name: "a", Value: "built in"}, {Name: "a", Value: "forged"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "built in"}}, "True Collected All properties were collected."},
		{"more than the API takes would fail the whole status", many, nil,
			nil, "False Truncated The limit of a Membership is 128 properties; the last 2 in order of their names are omitted."},
		{"so would a long value; characters count, not bytes",
			[]v1alpha1.Property{{Name: "a", Value: long + "!"}, {Name: "b", Value: long}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: long}, {Name: "b", Value: long}},
			"False Truncated Value cut to 1024 characters: a."},
		{"and one that is no text", []v1alpha1.Property{{Name: "a", Value: "\xff"}}, nil,
			[]v1alpha1.Property{{Name: "a", Value: "\uFFFD"}}, "True Collected All properties were collected."},
		{"and a name that is none", []v1alpha1.Property{{Name: "", Value: "x"}, {Name: "a b", Value: "x"}}, nil,
			nil, `False Truncated Omitted, because the name is not a qualified name: "", "a b".`},
		{"a failure goes before all that", []v1alpha1.Property{{Name: "", Value: "x"}}, []string{"z", "region"},
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

func TestHealth(t *testing.T) {
	bad := errors.New("etcd is away")
	for _, tc := range []struct {
		reason string
		probes string // '+' and '-'
		want   string
	}{
		{"nothing is known before the first probe", "", "?"},
		{"the first is believed", "+", "+"},
		{"also when it fails", "-", "-"},
		{"two failures may be a hiccup", "+--", "+"},
		{"three are not", "+---", "-"},
		{"a success in between begins anew", "+--+--", "+"},
		{"one success may be a hiccup too", "+---+", "-"},
		{"two are not", "+---++", "+"},
		{"a failure in between begins anew", "---+-+", "-"},
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
			t.Fatalf("renewed at %v of life", share)
		}
		if !c.renewAt(claim).Equal(c.renewAt(claim)) {
			t.Fatal("it changes its mind")
		}
		seen[credential{Since: noon, Lifetime: time.Hour}.renewAt(claim)] = true
	})
	require.Greater(t, len(seen), 10, "members that joined together renew together")
	require.Zero(t, credential{Since: noon}.renewAt("abc"), "what does not end is not renewed")
}

func TestDue(t *testing.T) {
	now := time.Now()
	require.Equal(t, now.Add(time.Hour), due(now.Add(time.Hour), now))
	require.Zero(t, due(time.Time{}, now))
	require.Equal(t, now, due(now.Add(-time.Second).Round(0), now),
		"by the clock that goes on while the machine is suspended")
}

func TestIssued(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { m := metav1.NewTime(noon.Add(d)); return &m }
	for _, tc := range []struct {
		reason string
		answer v1alpha1.Credential
		want   time.Duration
	}{
		{"the hub's clock counts, however wrong that of the agent is",
			v1alpha1.Credential{IssuedAt: at(-100 * time.Hour), ExpirationTime: at(-99 * time.Hour)}, time.Hour},
		{"without a beginning there is nothing better than the agent's clock",
			v1alpha1.Credential{ExpirationTime: at(2 * time.Hour)}, 2 * time.Hour},
		{"what is not known to end does not end", v1alpha1.Credential{IssuedAt: at(0)}, 0},
		{"nonsense is not taken for a life, nor for one without end",
			v1alpha1.Credential{IssuedAt: at(time.Hour), ExpirationTime: at(0)}, unknownLife},
		{"it does end, and it is only the agent's clock that says that it has",
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
	for _, asks := range []lifecycle.AgentAction{lifecycle.CheckJoinRequest, lifecycle.ReadMembership} {
		require.Equal(t, 5*s/2, a.pause(lifecycle.AgentStep{Actions: []lifecycle.AgentAction{asks}, After: 2 * s}), asks)
	}
	require.Equal(t, 2*s, a.pause(lifecycle.AgentStep{After: 2 * s}), "no other agent waits for it, so there is no jitter")
	require.Equal(t, longest, a.pause(lifecycle.AgentStep{After: 24 * time.Hour}))
}

func TestShort(t *testing.T) {
	require.Equal(t, "as it is", short("as it is"))
	for _, note := range []string{strings.Repeat("x", 1025), strings.Repeat("ä", 1000), "x" + strings.Repeat("ä", 1000),
		"x" + strings.Repeat("漢", 1000)} {
		got := short(note)
		require.True(t, utf8.ValidString(got), "%q", got[len(got)-4:])
		require.LessOrEqual(t, len(got), 1024)
		require.Greater(t, len(got), 1020)
	}
}

// TestMetricsOfTwoHubs checks that two agents of one cluster, each of another hub, have separate series, and that
// neither removes those of the other.
func TestMetricsOfTwoHubs(t *testing.T) {
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
	shown := func() (all []string) {
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
	require.Len(t, shown(), 4, "%v", shown())
	both[0].forget()
	left := shown()
	require.Len(t, left, 2, "%v", left)
	require.Contains(t, left[0], "//b")
	both[1].forget()
	require.Empty(t, shown())
}

func TestRecord(t *testing.T) {
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
	for _, bad := range []string{`{"version":2}`, `{}`, `no JSON`} {
		_, err := parseRecord([]byte(bad))
		require.ErrorIs(t, err, errRecord, bad)
	}
	empty, err := parseRecord(nil)
	require.NoError(t, err)
	require.Equal(t, record{}, empty)
}

func TestReport(t *testing.T) {
	before := v1alpha1.MembershipStatus{Agents: []v1alpha1.AgentStatus{{Type: "Work"}}}
	r := report{claim: "me", joined: joinedCondition, member: &memberReport{
		agentVersion: "v1", health: health{}.probed(nil),
		facts: facts{version: "v1.36.0", resources: &v1alpha1.ResourceUsage{Capacity: list("cpu", "1000m")},
			properties: property("a", "1")},
	}}
	first, changed := r.applied(before, noon)
	require.True(t, changed)
	require.Equal(t, lifecycle.ReportedJoined, reported(first, "me"))
	require.Equal(t, lifecycle.ReportedNothing, reported(first, "another"), "an agent that took over has said nothing yet")
	require.Equal(t, "Work", first.Agents[0].Type, "the entries of other agents are theirs")
	require.True(t, meta.IsStatusConditionTrue(first.Agents[1].Conditions, v1alpha1.ConditionHealthy))
	require.Len(t, before.Agents, 1, "what was read is not changed")

	r.member.facts.resources = &v1alpha1.ResourceUsage{Capacity: list("cpu", "1")}
	_, changed = r.applied(first, noon.Add(time.Hour))
	require.False(t, changed, "the same facts in other words, later, are no news")

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
	require.Equal(t, first.Agents, without.Agents, "only the entry of a companion that is there no more is removed")

	r.member.orphans = &v1alpha1.OrphanSummary{}
	_, changed = r.applied(first, noon)
	require.False(t, changed, "a member without orphaned objects writes nothing")
	r.member.orphans = &v1alpha1.OrphanSummary{Objects: 2, Works: 1, WorkNames: []string{"shop"}}
	orphaned, _ := r.applied(first, noon)
	require.Equal(t, r.member.orphans, orphaned.Orphans)
	r.member.orphans = nil
	_, changed = r.applied(orphaned, noon)
	require.False(t, changed, "an agent that has just been started does not take back what it reported")
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
		"the hub must not take an agent that cleans up for one that is done")
	require.Equal(t, first.Version, cleaning.Version)
	clean, _ := report{claim: "me", joined: cleanedCondition}.applied(cleaning, noon)
	require.Equal(t, lifecycle.ReportedClean, reported(clean, "me"))
	require.Empty(t, clean.Remaining)
}

// TestReportOfAMemberThatDoesNotAnswer checks that an agent that was started recently, and whose member does not
// respond, keeps the earlier report.
func TestReportOfAMemberThatDoesNotAnswer(t *testing.T) {
	said := v1alpha1.MembershipStatus{
		Claim: "me", Version: v1alpha1.VersionInfo{Kubernetes: "v1.36.0", Agent: "v1"},
		Resources:  v1alpha1.ResourceUsage{Capacity: list("cpu", "1")},
		Properties: slices.Concat(property("region", "eu"), property("zone", "a")),
	}
	emit := func(claim string, f facts) v1alpha1.MembershipStatus {
		published, _ := report{claim: claim, joined: joinedCondition,
			member: &memberReport{agentVersion: "v2", facts: f}}.applied(said, noon)
		return published
	}
	nothing := emit("me", facts{partial: true})
	require.Equal(t, v1alpha1.VersionInfo{Kubernetes: "v1.36.0", Agent: "v2"}, nothing.Version)
	require.Equal(t, said.Resources, nothing.Resources)
	require.Equal(t, said.Properties, nothing.Properties)

	some := emit("me", facts{partial: true, properties: property("zone", "b")})
	require.Equal(t, slices.Concat(property("region", "eu"), property("zone", "b")), some.Properties,
		"new results apply, and the other sources have not responded")

	all := emit("me", facts{version: "v1.37.0", resources: &v1alpha1.ResourceUsage{}, properties: property("zone", "b")})
	require.Equal(t, property("zone", "b"), all.Properties, "all have answered: what is not there is gone")
	require.Equal(t, "v1.37.0", all.Version.Kubernetes)
	require.Empty(t, all.Resources.Capacity)

	apis := func(names ...string) []v1alpha1.ServedAPIs {
		return []v1alpha1.ServedAPIs{{GroupVersion: "v1", Kinds: names}}
	}
	said.APIs = apis("Pod")
	require.Empty(t, emit("me", facts{}).APIs, "it was set up to tell that, and is not any more")
	require.Equal(t, apis("Pod"), emit("me", facts{apis: servedAPIs{reported: true}}).APIs)
	require.Equal(t, apis("Node"), emit("me", facts{apis: servedAPIs{reported: true, known: true,
		all: apis("Node")}}).APIs)
	require.Empty(t, emit("another", facts{apis: servedAPIs{reported: true}}).APIs)

	other := emit("another", facts{partial: true})
	require.Empty(t, other.Properties, "what another agent has said is not this one's")
	require.Empty(t, other.Version.Kubernetes)
}

func TestRenewalState(t *testing.T) {
	asked := &renewalRequest{ID: "1"}
	sent := &v1alpha1.Renewal{ID: "1"}
	for _, tc := range []struct {
		reason string
		asked  *renewalRequest
		sent   *v1alpha1.Renewal
		answer *v1alpha1.RenewalAnswer
		want   lifecycle.RenewalState
	}{
		{"nothing asked", nil, nil, nil, lifecycle.RenewalNone},
		{"written down and not sent: a crash came between", asked, nil, nil, lifecycle.RenewalNone},
		{"what was sent is an older one", asked, &v1alpha1.Renewal{ID: "0"}, &v1alpha1.RenewalAnswer{ID: "0", Refused: "No."},
			lifecycle.RenewalNone},
		{"sent", asked, sent, nil, lifecycle.RenewalAsked},
		{"the answer is to an older one", asked, sent, &v1alpha1.RenewalAnswer{ID: "0", Credential: &v1alpha1.Credential{}},
			lifecycle.RenewalAsked},
		{"answered", asked, sent, &v1alpha1.RenewalAnswer{ID: "1", Credential: &v1alpha1.Credential{}},
			lifecycle.RenewalAnswered},
		{"refused", asked, sent, &v1alpha1.RenewalAnswer{ID: "1", Refused: "No."}, lifecycle.RenewalRefused},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := &v1alpha1.Membership{Spec: v1alpha1.MembershipSpec{Renewal: tc.answer},
				Status: v1alpha1.MembershipStatus{Renewal: tc.sent}}
			require.Equal(t, tc.want, renewalState(tc.asked, m))
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
	mine := answer("", "", nil)
	member := record{Member: &registered{UID: "uid"}}
	otherToken := func(r *v1alpha1.JoinRequest) { r.Spec.Token = &v1alpha1.TokenProof{Name: "old"} }
	for _, tc := range []struct {
		reason string
		record record
		theirs *v1alpha1.JoinRequest
		want   lifecycle.JoinRequestState
	}{
		{"not looked at yet", member, answer("", "", nil), lifecycle.JoinRequestPending},
		{"held", member, answer(v1alpha1.AnswerHeld, v1alpha1.ReasonClusterIDTaken, nil), lifecycle.JoinRequestHeld},
		{"denied", member, answer(v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, nil), lifecycle.JoinRequestDenied},
		{"denied for the token that it has", record{}, answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, nil),
			lifecycle.JoinRequestDenied},
		{"denied for a token that it had: start over with the one that it has", record{},
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, otherToken), lifecycle.JoinRequestDeregisteredKept},
		{"a member never starts over for that: its claim is what it is known by", member,
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused, otherToken), lifecycle.JoinRequestDenied},
		{"nor is a claim given up that was turned down for another reason", record{},
			answer(v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, otherToken), lifecycle.JoinRequestDenied},
		{"forgotten", member, answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered, nil),
			lifecycle.JoinRequestDeregistered},
		{"forgotten, and the MemberCluster is kept", member, answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered,
			func(r *v1alpha1.JoinRequest) { r.Status.MemberUID = "uid" }), lifecycle.JoinRequestDeregisteredKept},
		{"a claim that was forgotten stays so, whichever of its requests says it", member,
			answer(v1alpha1.AnswerDeregistered, v1alpha1.ReasonDeregistered,
				func(r *v1alpha1.JoinRequest) { r.Spec.MemberUID = "" }), lifecycle.JoinRequestDeregistered},
		{"issued", member, answer(v1alpha1.AnswerIssued, "", nil), lifecycle.JoinRequestIssued},
		{"sealed to a key that is gone", member, answer(v1alpha1.AnswerIssued, "",
			func(r *v1alpha1.JoinRequest) { r.Spec.Credential.PublicKey = []byte("old") }), lifecycle.JoinRequestHeld},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got, _ := requestState(tc.record, nil, mine, tc.theirs)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestJoinRequestReason(t *testing.T) {
	answer := func(status metav1.ConditionStatus, reason string) *v1alpha1.JoinRequest {
		return &v1alpha1.JoinRequest{Status: v1alpha1.JoinRequestStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionIssued, Status: status, Reason: reason}}}}
	}
	for _, test := range []struct {
		reason string
		state  lifecycle.JoinRequestState
		theirs *v1alpha1.JoinRequest
		want   string
	}{
		{"the hub has not looked at it", lifecycle.JoinRequestPending, &v1alpha1.JoinRequest{}, ""},
		{"it takes a moment", lifecycle.JoinRequestPending, answer(metav1.ConditionFalse, v1alpha1.ReasonIssuing), ""},
		{"the hub cannot issue", lifecycle.JoinRequestPending, answer(metav1.ConditionFalse, v1alpha1.ReasonIssueFailed),
			v1alpha1.ReasonIssueFailed},
		{"an administrator must decide", lifecycle.JoinRequestHeld,
			answer(metav1.ConditionFalse, v1alpha1.ReasonWaitingForAcceptance),
			v1alpha1.ReasonWaitingForAcceptance},
		{"what was issued is an older request's", lifecycle.JoinRequestHeld, answer(metav1.ConditionTrue, "Issued"), ""},
		{"the hub is away", lifecycle.JoinRequestUnreachable, nil, "HubUnreachable"},
		{"the credential has ended", lifecycle.JoinRequestRefused, nil, "BootstrapRefused"},
		{"no bootstrap credential", lifecycle.JoinRequestNoCredential, nil, "BootstrapMissing"},
		{"it is denied, for a reason", lifecycle.JoinRequestDenied, answer(metav1.ConditionFalse,
			v1alpha1.ReasonTokenRefused),
			v1alpha1.ReasonTokenRefused},
		{"the failure is not that of the JoinRequest", lifecycle.JoinRequestNotAskable, nil, ""},
	} {
		require.Equal(t, test.want, requestReason(test.state, test.theirs), test.reason)
	}
}

func TestHubStateOf(t *testing.T) {
	gr := schema.GroupResource{Group: v1alpha1.GroupName, Resource: memberships}
	one := &v1alpha1.MembershipList{Items: []v1alpha1.Membership{{Spec: v1alpha1.MembershipSpec{MemberUID: "uid"}}}}
	for _, tc := range []struct {
		reason string
		list   *v1alpha1.MembershipList
		err    error
		want   lifecycle.HubState
	}{
		{"there it is", one, nil, lifecycle.HubSeen},
		{"allowed to look, and it is not there", &v1alpha1.MembershipList{}, nil, lifecycle.HubGone},
		{"another member has the namespace now",
			&v1alpha1.MembershipList{Items: []v1alpha1.Membership{{Spec: v1alpha1.MembershipSpec{MemberUID: "new"}}}}, nil,
			lifecycle.HubOther},
		{"no permission", nil, apierrors.NewForbidden(gr, "self", nil), lifecycle.HubRefused},
		{"no credential", nil, apierrors.NewUnauthorized("no"), lifecycle.HubRefused},
		{"no such kind, as on a hub that is just starting: that is no proof of anything", nil, apierrors.NewNotFound(gr, ""),
			lifecycle.HubUnreachable},
		{"no connection", nil, errors.New("refused"), lifecycle.HubUnreachable},
		{"overloaded", nil, apierrors.NewTooManyRequestsError("later"), lifecycle.HubUnreachable},
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

func TestValidate(t *testing.T) {
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
		{"zero options work", Options{}, ""},
		{"a name is that of a namespace on the hub", Options{Name: "East"}, "Name: "},
		{"an ID may be an ARN", Options{ClusterID: "arn:aws:eks:1:cluster.x"}, ""},
		{"an ID is of few characters", Options{ClusterID: "a b"}, "ClusterID: "},
		{"a version is short", Options{Version: strings.Repeat("v", 129)}, "Version: "},
		{"labels of Kubernetes are not for agents to set", Options{Labels: map[string]string{"kubernetes.io/x": ""}},
			`Labels["kubernetes.io/x"]`},
		{"a collector is known by its name", Options{Collectors: named("")}, "Collectors[0]: has no name"},
		{"and by no other's", Options{Collectors: named("a", "a")}, `Collectors[1]: has the name "a"`},
		{"nor by a built-in one's", Options{Collectors: named(sourceVersion)}, `Collectors[0]: has the name "version"`},
		{"a collector that is not there collects nothing", Options{Collectors: []PropertyCollector{nil}},
			"Collectors[0]: must not be nil"},
		{"a cleaner that is not there would be found out when the member leaves",
			Options{Cleaners: []membership.LeaveGate{nil}}, "Cleaners[0]: must not be nil"},
		{"a cleaner is known by its name", Options{Cleaners: gates("")}, "Cleaners[0]: has no name"},
		{"and by no other's", Options{Cleaners: gates("a", "a")}, `Cleaners[1]: has the name "a"`},
		{"a companion that is not there cannot run", Options{Companions: []Companion{nil}}, "Companions[0]: must not be nil"},
		{"a companion is known by its name", Options{Companions: companions("")}, "Companions[0]: has no name"},
		{"and by no other's", Options{Companions: companions("a", "a")}, `Companions[1]: has the name "a"`},
		{"though by that of a collector", Options{Cleaners: gates("a"), Collectors: named("a")}, ""},
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

func TestNewNeedsWhatAManagerWouldGive(t *testing.T) {
	whole := Options{
		Member: &rest.Config{Host: "https://member.example.com"}, Store: SecretStore(nil, "any"),
		Bootstrap: BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return nil, nil }),
	}
	_, err := New(whole)
	require.NoError(t, err)
	for field, change := range map[string]func(*Options){
		"Member":    func(o *Options) { o.Member = nil },
		"Bootstrap": func(o *Options) { o.Bootstrap = nil },
		"Store":     func(o *Options) { o.Store = nil },
		"Name":      func(o *Options) { o.Name = "Not A Name" },
	} {
		lacking := whole
		change(&lacking)
		_, err := New(lacking)
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}

// TestRecordIsNotPrinted checks that a record that is printed by mistake shows no secret.
func TestRecordIsNotPrinted(t *testing.T) {
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

func TestFactsArePartialUntilAllHaveAnswered(t *testing.T) {
	fails := errors.New("not now")
	c := &collection{log: logr.Discard(), news: func() {}, sources: []*source{
		{name: "a", timeout: time.Minute,
			collect: func(context.Context) (finding, error) { return finding{properties: property("a", "1")}, nil }},
		{name: "b", timeout: time.Minute, collect: func(context.Context) (finding, error) { return finding{}, fails }},
	}}
	require.True(t, c.facts().partial, "no source was called")
	c.round(t.Context())
	require.True(t, c.facts().partial)
	fails = nil
	c.round(t.Context())
	require.False(t, c.facts().partial)
	fails = errors.New("not any more")
	c.round(t.Context())
	require.False(t, c.facts().partial, "what it found before is kept")
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

	// A clock that was wrong must not keep a key for ever.
	next, err := nextKeys([]laterKey{{Key: keys[0].Key, MadeAt: noon.AddDate(5, 0, 0)}}, noon)
	require.NoError(t, err)
	require.Len(t, next, 2)
}
