package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// workOf returns a Work whose agent reports these conditions, as in "Applied=True/Applied
// Available=False/Progressing".
func workOf(text string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 3},
		Status: workv1alpha1.WorkStatus{ObservedGeneration: 3, Message: "web: status message"}}
	for part := range strings.FieldsSeq(text) {
		kind, rest, _ := strings.Cut(part, "=")
		status, reason, _ := strings.Cut(rest, "/")
		work.Status.Conditions = append(work.Status.Conditions,
			metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: 3})
	}
	return work
}

// withManifests adds manifests with these Available conditions to the Work, as in "Deployment=True/Ready
// Issuer=False/NotReady".
func withManifests(work *workv1alpha1.Work, text string) *workv1alpha1.Work {
	for i, part := range strings.Fields(text) {
		kind, rest, _ := strings.Cut(part, "=")
		status, reason, _ := strings.Cut(rest, "/")
		m := workv1alpha1.ManifestStatus{ResourceIdentifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1",
			Kind: kind, Namespace: "shop", Name: string(rune('a' + i))}}
		if status != "" {
			m.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionStatus(status), Reason: reason,
				Message: "1 of 2 are ready", ObservedGeneration: 3}}
		}
		work.Status.Manifests, work.Spec.Manifests = append(work.Status.Manifests, m),
			append(work.Spec.Manifests, workv1alpha1.Manifest{})
	}
	return work
}

func workWithManifests(text, manifests string) Work {
	return Of(withManifests(workOf(text), manifests))
}

func workWith(text string) Work { return Of(workOf(text)) }

const (
	healthy     = "Applied=True/Applied Available=True/Ready Degraded=False/AsDesired"
	progressing = "Applied=True/Applied Available=False/Progressing Degraded=False/AsDesired"
	failed      = "Applied=True/Applied Available=False/NotReady Degraded=True/NotReady"
	rejected    = "Applied=False/Rejected Available=False/NotApplied Degraded=True/Rejected"
	late        = "Applied=False/Pending Available=False/NotApplied Degraded=True/Timeout"
	unmet       = "Applied=False/UnknownKind Available=False/NotApplied Degraded=True/UnknownKind"
	repeated    = "Applied=False/Failed Available=False/NotApplied Degraded=False/AsDesired"
)

// assigned returns the state of an add-on on a reachable member that has the desired revision.
func assigned(works ...Work) Observed {
	return Observed{
		Generation: 2, Now: noon, Reachable: true, Desired: "r2", Revision: "r2", Since: noon.Add(-time.Hour),
		Current: true, Works: works,
		Check: v1alpha1.HealthCheck{Type: v1alpha1.HealthWorks},
	}
}

func (o Observed) with(changes ...func(*Observed)) Observed {
	for _, change := range changes {
		change(&o)
	}
	return o
}

func (w Work) with(change func(*Work)) Work {
	change(&w)
	return w
}

var (
	unreachable = func(o *Observed) { o.Reachable = false }
	unwritten   = func(o *Observed) { o.Current = false }
	none        = func(o *Observed) { o.Revision, o.Works, o.Current = "", nil, false }
	old         = func(o *Observed) { o.Revision = "r1" }
	unreported  = func(w *Work) { w.Generation = 4 }
	deleting    = func(w *Work) { w.Deleting = true }
)

func problem(reason string) func(*Observed) {
	return func(o *Observed) { o.Problems = append(o.Problems, Problem{Reason: reason, Message: "Set it right"}) }
}

func retried(reason string) func(*Observed) {
	return func(o *Observed) {
		o.Problems = append(o.Problems, Problem{Reason: reason, Message: "Once more", Retried: true})
	}
}

func blockedBy(reason rollout.HoldReason) func(*Observed) {
	return func(o *Observed) { o.Hold = reason }
}

func by(kind v1alpha1.HealthType) func(*Observed) { return func(o *Observed) { o.Check.Type = kind } }

// lease sets how many seconds ago the Lease was renewed and the revision was assigned.
func lease(renewed, since int) func(*Observed) {
	return func(o *Observed) {
		o.Check, o.Renewed, o.Since = v1alpha1.HealthCheck{Type: v1alpha1.HealthLease},
			noon.Add(-time.Duration(renewed)*time.Second), noon.Add(-time.Duration(since)*time.Second)
	}
}

func answer(health rollout.Health, message string) func(*Observed) {
	return func(o *Observed) {
		o.Check.Type, o.Answer = v1alpha1.HealthCustom, Answer{Health: health, Message: message}
	}
}

func registration(state RegistrationState) func(*Observed) {
	return func(o *Observed) { o.Registration.State = state }
}

func removal(reason string, failed bool) func(*Observed) {
	return func(o *Observed) { o.Removal = &Removal{Reason: reason, Message: "A Job runs.", Failed: failed} }
}

func TestAssess(t *testing.T) {
	// Each code is the first letter of a condition, its status (+ True, - False, ? Unknown), and its reason unless it is
	// the default reason.
	for _, test := range []struct {
		reason   string
		observed Observed
		health   rollout.Health
		want     string
		message  string
	}{
		{"all Works are available", assigned(workWith(healthy), workWith(healthy)), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},
		{"the default type is Works", assigned(workWith(progressing)).with(by("")), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "web: status message."},
		{"an add-on without objects is available", assigned(), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},
		{"one Work is progressing",
			assigned(workWith(healthy), workWith(progressing)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"web: status message."},
		{"a degraded object is a failure", assigned(workWith(failed)), "Failed", "C+ R+ M+ A-NotReady P-NotReady D+NotReady",
			"web: status message."},
		{"a rejected object is a failure", assigned(workWith(rejected), workWith(healthy)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"the timeout of a wave is a failure to apply", assigned(workWith(late)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"an attempt to apply that is repeated is not a failure", assigned(workWith(repeated)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: status message."},
		{"an unknown kind is a failure", assigned(workWith(unmet)), "Failed", "C+ R+ M-ApplyFailed A-NotReady " +
			"P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"an unknown kind is not a failure if another Work may define it",
			assigned(workWith(unmet), workWith(healthy)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: status message."},

		{"the Works are not written yet", assigned(workWith(healthy)).with(unwritten), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The member has not reported the status of the add-on yet."},
		{"the status of the Work describes an earlier generation", assigned(workWith(failed).with(unreported)),
			"Progressing", "C+ R+ M-Applying A-NotReady P+Updating D-",
			"The member has not reported the status of the add-on yet."},
		{"a Work is being deleted",
			assigned(workWith(healthy).with(deleting)), "Progressing", "C+ R+ M-Applying A-NotReady " +
				"P+Updating D-", "The member has not reported the status of the add-on yet."},
		{"no revision is assigned", assigned().with(none), "Progressing", "C+ R+ M-Applying A-NotReady P+Updating D-",
			"The add-on is being updated."},
		{"no revision is assigned, and the desired revision is unknown",
			assigned().with(none, func(o *Observed) { o.Desired = "" }), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The add-on is being updated."},
		{"no revision is assigned, and all Works are written",
			assigned().with(none, func(o *Observed) { o.Current = true }), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The add-on is being updated."},
		{"no revision is assigned, and the update waits for a permit", assigned().with(none, blockedBy(rollout.HoldOrder)),
			"Progressing", "C+ R+ M-WaitingForTurn A-NotReady P+WaitingForTurn D-", "The update waits for earlier members."},
		{"the previous revision is available, and the update waits for a permit",
			assigned(workWith(healthy)).with(old, blockedBy(rollout.HoldApproval)), "Succeeded",
			"C+ R+ M+ A+ P+WaitingForTurn D-",
			"All objects are applied and ready. The update waits for an approval."},
		{"a halted update is not progressing",
			assigned(workWith(healthy)).with(old, blockedBy(rollout.HoldFailures)), "Succeeded",
			"C+ R+ M+ A+ P-WaitingForTurn D-",
			"All objects are applied and ready. The update waits because too many members have failed."},
		{"the previous revision is available, and the update is not blocked",
			assigned(workWith(healthy)).with(old), "Succeeded",
			"C+ R+ M-Applying A+ P+Updating D-", "The add-on is being updated."},
		{"the previous revision is rejected, and the rollout is paused",
			assigned(workWith(rejected)).with(old, blockedBy(rollout.HoldPaused)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed",
			"web: status message. The update waits because the rollout is paused."},
		{"the hold reason is ignored if the desired revision is assigned",
			assigned(workWith(healthy)).with(blockedBy(rollout.HoldPaused)), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},

		{"an unreachable member is unknown, and its last report is kept", assigned(workWith(healthy)).with(unreachable),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: web: status message."},
		{"an unreachable member whose last report is a failure", assigned(workWith(rejected)).with(unreachable), "Unknown",
			"C+ R+ M-ApplyFailed A?MemberUnknown P?MemberUnknown D?MemberUnknown",
			"The member cannot be reached. Last report: web: status message."},
		{"an unreachable member without a revision",
			assigned().with(none, unreachable), "Unknown", "C+ R+ M-Applying A?MemberUnknown " +
				"P+Updating D?MemberUnknown", "The member cannot be reached. The add-on is not installed yet."},
		{"an unreachable member that has not reported the assigned generation",
			assigned(workWith(healthy).with(unreported)).with(unreachable), "Unknown",
			"C+ R+ M-Applying A?MemberUnknown P?MemberUnknown D?MemberUnknown",
			"The member cannot be reached. Last report: web: status message."},
		{"an unreachable member without Works has no last report", assigned().with(unreachable), "Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown", "The member cannot be reached."},
		{"an unreachable hosting member is named", assigned(workWith(healthy)).with(unreachable, hostedOn("west")), "Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"Member west, which hosts the add-on agent, cannot be reached. Last report: web: status message."},
		{"the last report of a Lease is its renewal time", assigned(workWith(healthy)).with(lease(600, 900), unreachable),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. The Lease of the add-on agent was last renewed at 2026-01-02T11:50:00Z."},
		{"the last report of a health function is its message",
			assigned(workWith(healthy)).with(answer("Failed", "It is full"), unreachable),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: It is full."},

		{"a missing configuration is a failure, and the previous revision is available",
			assigned(workWith(healthy)).with(old, problem("ConfigNotFound")), "Failed",
			"C-ConfigNotFound R+ M+ A+ P-ConfigNotFound D+ConfigNotFound", "Set it right."},
		{"a missing configuration, and no current status of the previous revision",
			assigned(workWith(healthy).with(unreported)).with(old, problem("ConfigNotFound")), "Failed",
			"C-ConfigNotFound R+ M-Applying A-NotReady P-ConfigNotFound D+ConfigNotFound", "Set it right."},
		{"an invalid configuration is a failure", assigned().with(none, problem("ConfigInvalid")), "Failed",
			"C-ConfigInvalid R+ M-Applying A-NotReady P-ConfigInvalid D+ConfigInvalid", "Set it right."},
		{"a problem on an unreachable member is a failure",
			assigned(workWith(healthy)).with(problem("Unsupported"), unreachable), "Failed",
			"C-Unsupported R+ M+ A?MemberUnknown P-Unsupported D+Unsupported", "Set it right."},
		{"the manifests cannot be rendered", assigned().with(none, problem("NoAgent")), "Failed",
			"C+ R+ M-NoAgent A-NotReady P-NoAgent D+NoAgent", "Set it right."},
		{"a problem without a reason is a problem of the manifests", assigned(workWith(healthy)).with(problem("")), "Failed",
			"C+ R+ M-ManifestsFailed A+ P-ManifestsFailed D+ManifestsFailed", "Set it right."},
		{"a retried problem is reported, and is not a failure", assigned(workWith(healthy)).with(retried("ManifestsFailed")),
			"Succeeded", "C+ R+ M-ManifestsFailed A+ P-Updated D-", "Once more. All objects are applied and ready."},
		{"a retried problem without an assigned revision", assigned().with(none, retried("ManifestsFailed")), "Progressing",
			"C+ R+ M-ManifestsFailed A-NotReady P+Updating D-", "Once more."},
		{"a problem that is not retried precedes a retried problem",
			assigned().with(none, retried("ConfigNotFound"), problem("Registering"), problem("Unsupported")), "Failed",
			"C-Unsupported R-Registering M-Applying A-NotReady P-Unsupported D+Unsupported",
			"Set it right. There are 2 more problems."},

		{"a retried registration is progressing", assigned(workWith(healthy)).with(retried("Registering")),
			"Progressing", "C+ R-Registering M+ A+ P+Updating D-", "Once more."},
		{"a problem of the registration precedes a retried problem of the manifests",
			assigned(workWith(healthy)).with(retried("NoAgent"), problem("Registering")),
			"Failed", "C+ R-Registering M-NoAgent A+ P-Registering D+Registering", "Set it right. There is 1 more problem."},

		{"the agent has a credential", assigned(workWith(healthy)).with(registration(Registered)), "Succeeded",
			"C+ R+Registered M+ A+ P-Updated D-", "All objects are applied and ready."},
		{"an available agent without a credential is progressing",
			assigned(workWith(healthy)).with(registration(Registering)), "Progressing", "C+ R-Registering M+ A+ P+Updating D-",
			"The add-on agent has no credential for the hub yet."},
		{"no revision is assigned, and the message is about the missing credential",
			assigned().with(none, registration(Registering)),
			"Progressing", "C+ R-Registering M-Applying A-NotReady P+Updating D-",
			"The add-on agent has no credential for the hub yet."},
		{"a rejected object precedes a missing credential",
			assigned(workWith(rejected)).with(registration(Registering)), "Failed",
			"C+ R-Registering M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"the agent has a credential whose renewal is refused",
			assigned(workWith(healthy)).with(registration(Registered),
				func(o *Observed) { o.Registration.Message = "It is refused" }), "Succeeded",
			"C+ R+Registered M+ A+ P-Updated D-", "It is refused. All objects are applied and ready."},
		{"an unknown registration state is not ready", assigned(workWith(healthy)).with(registration("?")), "Progressing",
			"C+ R-Registering M+ A+ P+Updating D-", "The add-on agent has no credential for the hub yet."},

		{"a Lease that was never renewed, shorter than ten minutes after the assignment",
			assigned(workWith(healthy)).with(neverRenewed(599, 60)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"The add-on agent has not renewed its Lease yet."},
		{"a Lease that was never renewed, ten minutes after the assignment",
			assigned(workWith(healthy)).with(neverRenewed(600, 60)),
			"Failed", "C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired", "The add-on agent has never renewed its Lease."},
		{"a Lease that was never renewed, with a duration of more than ten minutes",
			assigned(workWith(healthy)).with(neverRenewed(899, 900)), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on agent has not renewed its Lease yet."},
		{"a Lease that was never renewed, with an unknown time of the assignment",
			assigned(workWith(healthy)).with(neverRenewed(900, 60), func(o *Observed) { o.Since = time.Time{} }), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on agent has not renewed its Lease yet."},
		{"a Lease that was never renewed, while objects are not applied",
			assigned(workWith(repeated)).with(neverRenewed(900, 60)), "Progressing",
			"C+ R+ M-Applying A-LeaseExpired P+Updating D-", "web: status message."},
		{"a renewed Lease is available, although objects are degraded",
			assigned(workWith(failed)).with(lease(179, 900)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "The add-on agent renews its Lease."},
		{"a renewed Lease, and a rejected object", assigned(workWith(rejected)).with(lease(1, 900)), "Failed",
			"C+ R+ M-ApplyFailed A+ P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"an expired Lease is a failure", assigned(workWith(healthy)).with(lease(180, 900)), "Failed",
			"C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired",
			"The add-on agent has not renewed its Lease since 2026-01-02T11:57:00Z."},
		{"a Lease that was last renewed before the update", assigned(workWith(healthy)).with(lease(100, 60)),
			"Progressing", "C+ R+ M+ A+ P+Updating D-", "The add-on agent has not renewed its Lease since the update."},
		{"an expired Lease, shorter than the Lease duration after the update",
			assigned(workWith(healthy)).with(lease(200, 179)), "Progressing",
			"C+ R+ M+ A-LeaseExpired P+Updating D-", "The add-on agent has not renewed its Lease since 2026-01-02T11:56:40Z."},
		{"an expired Lease, as long as the Lease duration after the update",
			assigned(workWith(healthy)).with(lease(300, 180)), "Failed", "C+ R+ M+ A-LeaseExpired " +
				"P-LeaseExpired D+LeaseExpired", "The add-on agent has not renewed its Lease since 2026-01-02T11:55:00Z."},
		{"the add-on sets the Lease duration",
			assigned(workWith(healthy)).with(lease(30, 900),
				func(o *Observed) { o.Check.LeaseDurationSeconds = new(int32(30)) }),
			"Failed", "C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired",
			"The add-on agent has not renewed its Lease since 2026-01-02T11:59:30Z."},

		{"the health function returns Succeeded", assigned(workWith(failed)).with(answer("Succeeded", "")), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "The add-on reports that it is healthy."},
		{"the health function returns Failed", assigned(workWith(healthy)).with(answer("Failed", "It is full")), "Failed",
			"C+ R+ M+ A-NotReady P-NotReady D+NotReady", "It is full."},
		{"the health function returns Progressing",
			assigned(workWith(healthy)).with(answer("Progressing", "")), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on reports that it is not ready yet."},
		{"the health function returns no health",
			assigned(workWith(healthy)).with(answer("", "")), "Unknown", "C+ R+ M+ A?NotReady P+Updating D-",
			"The add-on does not report its health."},
		{"the health function returns Succeeded while objects are not applied",
			assigned(workWith(repeated)).with(answer("Succeeded", "")),
			"Progressing", "C+ R+ M-Applying A+ P+Updating D-", "web: status message."},

		{"with type None, applied is available", assigned(workWith(failed)).with(by(v1alpha1.HealthNone)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied."},
		{"with type None, objects that are not applied are not available",
			assigned(workWith(repeated)).with(by(v1alpha1.HealthNone)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: status message."},

		{"all workloads are ready, and another object is not ready",
			assigned(workWithManifests(failed, "Deployment=True/Ready "+
				"DaemonSet=True/Ready Issuer=False/NotReady")).with(by(v1alpha1.HealthWorkloads)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied, and all workloads are ready."},
		{"type Workloads without workloads is equal to type None",
			assigned(workWithManifests(failed, "Issuer=False/NotReady")).with(by(v1alpha1.HealthWorkloads)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied."},
		{"one workload is progressing",
			assigned(workWithManifests(progressing, "Deployment=True/Ready StatefulSet=False/Progressing"),
				workWith(healthy)).with(by(v1alpha1.HealthWorkloads)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"apps/StatefulSet shop/b: 1 of 2 are ready."},
		{"one workload has failed, and an object of another Work that is no workload as well",
			assigned(workWithManifests(failed, "Deployment=False/NotReady"),
				workWithManifests(failed, "Issuer=False/NotReady")).with(by(v1alpha1.HealthWorkloads)), "Failed",
			"C+ R+ M+ A-NotReady P-NotReady D+NotReady", "apps/Deployment shop/a: 1 of 2 are ready."},
		{"one workload is progressing, and an object that is no workload has failed",
			assigned(workWithManifests(failed, "Issuer=False/NotReady"),
				workWithManifests(progressing, "Issuer=True/Ready StatefulSet=False/Progressing")).
				with(by(v1alpha1.HealthWorkloads)),
			"Progressing", "C+ R+ M+ A-NotReady P+Updating D-", "apps/StatefulSet shop/b: 1 of 2 are ready."},
		{"a rejected object precedes a workload that is not applied",
			assigned(workWithManifests(rejected, "Deployment=False/NotApplied")).with(by(v1alpha1.HealthWorkloads)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: status message."},
		{"all applied workloads are ready, and an object is not applied yet",
			assigned(workWithManifests(repeated, "Deployment=True/Ready")).with(by(v1alpha1.HealthWorkloads)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: status message."},
		{"workloads of an unreachable member are unknown",
			assigned(workWithManifests(healthy, "Deployment=True/Ready")).with(by(v1alpha1.HealthWorkloads), unreachable),
			"Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: web: status message."},

		{"a hook runs before the removal: the configuration is no longer evaluated",
			assigned(workWith(healthy)).with(removal("PreDelete", false), problem("ConfigNotFound")), "Progressing",
			"C R M-Removing A-Removing P+PreDelete D-", "A Job runs."},
		{"a hook has failed", assigned(workWith(healthy)).with(removal("HookFailed", true)), "Progressing",
			"C R M-Removing A-Removing P+HookFailed D+HookFailed", "A Job runs."},
		{"a removal precedes an unreachable member and a blocked update",
			assigned(workWith(healthy)).with(removal("", false), unreachable, blockedBy(rollout.HoldOrder), old), "Progressing",
			"C R M-Removing A-Removing P+Removing D-", "A Job runs."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := Assess(test.observed)
			require.Equal(t, test.health, got.Health)
			require.Equal(t, test.want, abbreviated(got.Conditions))
			require.Equal(t, test.message, got.Message)
		})
	}
}

// TestMessagesOfConditions: the message of each condition is true. A member with a problem is not being updated, and an
// error of the registration is in the condition of the registration.
func TestMessagesOfConditions(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		kind     string
		want     string
	}{
		{"no revision is assigned, and a configuration is missing",
			assigned().with(none, problem("ConfigNotFound")), "ManifestsApplied",
			"The add-on is not installed yet."},
		{"the previous revision is assigned, and a configuration is missing",
			assigned(workWith(healthy).with(unreported)).with(old, problem("ConfigNotFound")),
			"ManifestsApplied", "The member has not reported the status of the add-on yet."},
		{"the previous revision is assigned, without a problem", assigned(workWith(healthy)).with(old), "ManifestsApplied",
			"The add-on is being updated."},
		{"the renewal of a credential is refused",
			assigned(workWith(healthy)).with(func(o *Observed) { o.Registration = Registration{Registered, "It is refused"} }),
			"RegistrationReady", "It is refused."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, meta.FindStatusCondition(Assess(test.observed).Conditions, test.kind).Message)
		})
	}
}

// defaultReasons are the reasons that the tables omit.
var defaultReasons = map[string]string{"Configured": "Configured", "RegistrationReady": "NotRequired",
	"ManifestsApplied": "Applied", "Available": "Available", "Degraded": "AsDesired"}

func abbreviated(conditions []metav1.Condition) string {
	var parts []string
	for _, kind := range []string{"Configured", "RegistrationReady", "ManifestsApplied", "Available", "Progressing",
		"Degraded"} {
		part := kind[:1]
		for _, c := range conditions {
			if c.Type == kind {
				part += map[metav1.ConditionStatus]string{"True": "+", "False": "-", "Unknown": "?"}[c.Status]
				if c.Reason != defaultReasons[kind] {
					part += c.Reason
				}
			}
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestAssess_After(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		want     time.Duration
	}{
		{"Works report their own state", assigned(workWith(healthy)), 0},
		{"a renewed Lease expires", assigned(workWith(healthy)).with(lease(100, 900)), 80 * time.Second},
		{"a Lease that was never renewed, before its deadline",
			assigned(workWith(healthy)).with(neverRenewed(500, 60)), 100 * time.Second},
		{"a Lease that was never renewed, after its deadline", assigned(workWith(healthy)).with(neverRenewed(600, 60)), 0},
		{"an expired Lease", assigned(workWith(healthy)).with(lease(180, 900)), 0},
		{"a Lease that was last renewed before the update expires",
			assigned(workWith(healthy)).with(lease(100, 10)), 80 * time.Second},
		{"an expired Lease has the Lease duration after the update",
			assigned(workWith(healthy)).with(lease(200, 10)), 170 * time.Second},
		{"other conditions report an unreachable member", assigned(workWith(healthy)).with(lease(100, 900), unreachable), 0},
		{"the Lease of an add-on that is being removed is ignored",
			assigned(workWith(healthy)).with(lease(100, 900), removal("", false)), 0},
	} {
		require.Equal(t, test.want, Assess(test.observed).After, test.reason)
	}
}

func TestSince(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)) }
	require.Equal(t, noon.Add(3*time.Minute), Since([]metav1.Condition{
		{Type: v1alpha1.ConditionAvailable, LastTransitionTime: at(1)},
		{Type: v1alpha1.ConditionManifestsApplied, LastTransitionTime: at(3)},
		{Type: v1alpha1.ConditionProgressing, LastTransitionTime: at(9)}, {Type: "Other", LastTransitionTime: at(9)},
	}), "want the last transition of the conditions of health")
	require.True(t, Since(nil).IsZero())
}

// TestStatus_Blocked covers all hold reasons: a new one must be added here.
func TestStatus_Blocked(t *testing.T) {
	for _, reason := range []rollout.HoldReason{
		rollout.HoldConcurrency, rollout.HoldOrder, rollout.HoldApproval, rollout.HoldTime, rollout.HoldPaused,
		rollout.HoldStopped, rollout.HoldFailures,
	} {
		require.NotContains(t, holdMessage(reason), string(reason), fmt.Sprint(reason))
	}
	require.Equal(t, "The update waits: Moon.", holdMessage("Moon"))
}

// neverRenewed sets a Lease duration in seconds, no renewal, and how many seconds ago the revision was assigned.
func neverRenewed(since, seconds int32) func(*Observed) {
	return func(o *Observed) {
		o.Check = v1alpha1.HealthCheck{Type: v1alpha1.HealthLease, LeaseDurationSeconds: &seconds}
		o.Since = noon.Add(-time.Duration(since) * time.Second)
	}
}

func hostedOn(name string) func(*Observed) { return func(o *Observed) { o.Hosting = name } }
