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
		Status: workv1alpha1.WorkStatus{ObservedGeneration: 3, Message: "web: it says so"}}
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

func runs(text, manifests string) Work { return Of(withManifests(workOf(text), manifests)) }

func says(text string) Work { return Of(workOf(text)) }

const (
	allWell  = "Applied=True/Applied Available=True/Ready Degraded=False/AsDesired"
	onItsWay = "Applied=True/Applied Available=False/Progressing Degraded=False/AsDesired"
	failed   = "Applied=True/Applied Available=False/NotReady Degraded=True/NotReady"
	rejected = "Applied=False/Rejected Available=False/NotApplied Degraded=True/Rejected"
	late     = "Applied=False/Pending Available=False/NotApplied Degraded=True/Timeout"
	unmet    = "Applied=False/UnknownKind Available=False/NotApplied Degraded=True/UnknownKind"
	repeated = "Applied=False/Failed Available=False/NotApplied Degraded=False/AsDesired"
)

// assigned returns the state of an add-on on a reachable member that has the desired revision.
func assigned(works ...Work) Observed {
	return Observed{
		Generation: 2, Now: noon, Reachable: true, Desired: "r2", Revision: "r2", Since: noon.Add(-time.Hour),
		Current: true, Works: works,
		Check: v1alpha1.HealthCheck{Type: v1alpha1.HealthWorks},
	}
}

func (o Observed) but(changes ...func(*Observed)) Observed {
	for _, change := range changes {
		change(&o)
	}
	return o
}

func (w Work) but(change func(*Work)) Work {
	change(&w)
	return w
}

var (
	outOfReach = func(o *Observed) { o.Reachable = false }
	unwritten  = func(o *Observed) { o.Current = false }
	none       = func(o *Observed) { o.Revision, o.Works, o.Current = "", nil, false }
	old        = func(o *Observed) { o.Revision = "r1" }
	unseen     = func(w *Work) { w.Generation = 4 }
	deleting   = func(w *Work) { w.Deleting = true }
)

func problem(reason string) func(*Observed) {
	return func(o *Observed) { o.Problems = append(o.Problems, Problem{Reason: reason, Message: "Set it right"}) }
}

func retried(reason string) func(*Observed) {
	return func(o *Observed) {
		o.Problems = append(o.Problems, Problem{Reason: reason, Message: "Once more", Retried: true})
	}
}

func waits(reason rollout.HoldReason) func(*Observed) { return func(o *Observed) { o.Hold = reason } }

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

func removal(reason string, is bool) func(*Observed) {
	return func(o *Observed) { o.Removal = &Removal{Reason: reason, Message: "A Job runs.", Failed: is} }
}

func TestAssess(t *testing.T) {
	// Each code is the first letter of a condition, its status (+ True, - False, ? Unknown), and its reason unless it is
	// the usual one.
	for _, test := range []struct {
		reason   string
		observed Observed
		health   rollout.Health
		want     string
		message  string
	}{
		{"all is well", assigned(says(allWell), says(allWell)), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},
		{"a type that is not set is Works", assigned(says(onItsWay)).but(by("")), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "web: it says so."},
		{"an add-on of no objects is well", assigned(), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},
		{"it is on its way", assigned(says(allWell), says(onItsWay)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"web: it says so."},
		{"what the objects say is a failure", assigned(says(failed)), "Failed", "C+ R+ M+ A-NotReady P-NotReady D+NotReady",
			"web: it says so."},
		{"what cannot be applied is a failure", assigned(says(rejected), says(allWell)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"a wave that took too long is one of applying", assigned(says(late)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"an attempt that is repeated is none", assigned(says(repeated)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: it says so."},
		{"an unknown kind is a failure", assigned(says(unmet)), "Failed", "C+ R+ M-ApplyFailed A-NotReady " +
			"P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"but another Work of the add-on may define it", assigned(says(unmet), says(allWell)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: it says so."},

		{"its Works are not written yet", assigned(says(allWell)).but(unwritten), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The member has not reported the status of the add-on yet."},
		{"the member has not looked yet: what it said was about something else", assigned(says(failed).but(unseen)),
			"Progressing", "C+ R+ M-Applying A-NotReady P+Updating D-",
			"The member has not reported the status of the add-on yet."},
		{"a user deletes a Work", assigned(says(allWell).but(deleting)), "Progressing", "C+ R+ M-Applying A-NotReady " +
			"P+Updating D-", "The member has not reported the status of the add-on yet."},
		{"it has nothing yet", assigned().but(none), "Progressing", "C+ R+ M-Applying A-NotReady P+Updating D-",
			"The add-on is being updated."},
		{"the desired revision is unknown", assigned().but(none, func(o *Observed) { o.Desired = "" }), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The add-on is being updated."},
		{"no revision is assigned, so there are no Works to be current",
			assigned().but(none, func(o *Observed) { o.Current = true }), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "The add-on is being updated."},
		{"no revision is assigned, and it waits for a permit", assigned().but(none, waits(rollout.HoldOrder)),
			"Progressing", "C+ R+ M-WaitingForTurn A-NotReady P+WaitingForTurn D-", "The update waits for earlier members."},
		{"it has the previous revision, and waits for a permit: it is available, and both are reported",
			assigned(says(allWell)).but(old, waits(rollout.HoldApproval)), "Succeeded", "C+ R+ M+ A+ P+WaitingForTurn D-",
			"All objects are applied and ready. The update waits for an approval."},
		{"what is halted is not on its way", assigned(says(allWell)).but(old, waits(rollout.HoldFailures)), "Succeeded",
			"C+ R+ M+ A+ P-WaitingForTurn D-",
			"All objects are applied and ready. The update waits because too many members have failed."},
		{"it has the previous revision, and is not blocked", assigned(says(allWell)).but(old), "Succeeded",
			"C+ R+ M-Applying A+ P+Updating D-", "The add-on is being updated."},
		{"it fails at the one before", assigned(says(rejected)).but(old, waits(rollout.HoldPaused)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed",
			"web: it says so. The update waits because the rollout is paused."},
		{"why it had to wait does not matter when it need not any more",
			assigned(says(allWell)).but(waits(rollout.HoldPaused)), "Succeeded", "C+ R+ M+ A+ P-Updated D-",
			"All objects are applied and ready."},

		{"an unreachable member is unknown, and its last report is kept", assigned(says(allWell)).but(outOfReach),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: web: it says so."},
		{"also if that was that it has failed", assigned(says(rejected)).but(outOfReach), "Unknown",
			"C+ R+ M-ApplyFailed A?MemberUnknown P?MemberUnknown D?MemberUnknown",
			"The member cannot be reached. Last report: web: it says so."},
		{"or it has nothing yet", assigned().but(none, outOfReach), "Unknown", "C+ R+ M-Applying A?MemberUnknown " +
			"P+Updating D?MemberUnknown", "The member cannot be reached. The add-on is not installed yet."},
		{"or it was assigned a revision since", assigned(says(allWell).but(unseen)).but(outOfReach), "Unknown",
			"C+ R+ M-Applying A?MemberUnknown P?MemberUnknown D?MemberUnknown",
			"The member cannot be reached. Last report: web: it says so."},
		{"an add-on of no objects has no last report", assigned().but(outOfReach), "Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown", "The member cannot be reached."},
		{"an unreachable hosting member is named", assigned(says(allWell)).but(outOfReach, hostedOn("west")), "Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"Member west, which hosts the add-on agent, cannot be reached. Last report: web: it says so."},
		{"the last report of a Lease is its renewal time", assigned(says(allWell)).but(lease(600, 900), outOfReach),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. The Lease of the add-on agent was last renewed at 2026-01-02T11:50:00Z."},
		{"that of a function what it said", assigned(says(allWell)).but(answer("Failed", "It is full"), outOfReach),
			"Unknown", "C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: It is full."},

		{"a configuration that is missing is a failure, and what runs by the one before is well",
			assigned(says(allWell)).but(old, problem("ConfigNotFound")), "Failed",
			"C-ConfigNotFound R+ M+ A+ P-ConfigNotFound D+ConfigNotFound", "Set it right."},
		{"nor is it being updated, though no report has arrived",
			assigned(says(allWell).but(unseen)).but(old, problem("ConfigNotFound")), "Failed",
			"C-ConfigNotFound R+ M-Applying A-NotReady P-ConfigNotFound D+ConfigNotFound", "Set it right."},
		{"one that is wrong as well", assigned().but(none, problem("ConfigInvalid")), "Failed",
			"C-ConfigInvalid R+ M-Applying A-NotReady P-ConfigInvalid D+ConfigInvalid", "Set it right."},
		{"it does not matter whether the member can be reached",
			assigned(says(allWell)).but(problem("Unsupported"), outOfReach), "Failed",
			"C-Unsupported R+ M+ A?MemberUnknown P-Unsupported D+Unsupported", "Set it right."},
		{"the manifests cannot be rendered", assigned().but(none, problem("NoAgent")), "Failed",
			"C+ R+ M-NoAgent A-NotReady P-NoAgent D+NoAgent", "Set it right."},
		{"a problem of no reason is one of its manifests", assigned(says(allWell)).but(problem("")), "Failed",
			"C+ R+ M-ManifestsFailed A+ P-ManifestsFailed D+ManifestsFailed", "Set it right."},
		{"a retried problem is reported, and is not a failure", assigned(says(allWell)).but(retried("ManifestsFailed")),
			"Succeeded", "C+ R+ M-ManifestsFailed A+ P-Updated D-", "Once more. All objects are applied and ready."},
		{"also if there is nothing yet", assigned().but(none, retried("ManifestsFailed")), "Progressing",
			"C+ R+ M-ManifestsFailed A-NotReady P+Updating D-", "Once more."},
		{"what does not pass goes before what does, and each has its condition",
			assigned().but(none, retried("ConfigNotFound"), problem("Registering"), problem("Unsupported")), "Failed",
			"C-Unsupported R-Registering M-Applying A-NotReady P-Unsupported D+Unsupported",
			"Set it right. There are 2 more problems."},

		{"a registration that is tried again is waited for", assigned(says(allWell)).but(retried("Registering")),
			"Progressing", "C+ R-Registering M+ A+ P+Updating D-", "Once more."},
		{"also if what passes would matter more", assigned(says(allWell)).but(retried("NoAgent"), problem("Registering")),
			"Failed", "C+ R-Registering M-NoAgent A+ P-Registering D+Registering", "Set it right. There is 1 more problem."},

		{"an agent that has its credential", assigned(says(allWell)).but(registration(Registered)), "Succeeded",
			"C+ R+Registered M+ A+ P-Updated D-", "All objects are applied and ready."},
		{"one that waits for it is not at its end, however well it is",
			assigned(says(allWell)).but(registration(Registering)), "Progressing", "C+ R-Registering M+ A+ P+Updating D-",
			"The add-on agent has no credential for the hub yet."},
		{"and that is what it waits for where it has nothing yet", assigned().but(none, registration(Registering)),
			"Progressing", "C+ R-Registering M-Applying A-NotReady P+Updating D-",
			"The add-on agent has no credential for the hub yet."},
		{"that it is not applied says more", assigned(says(rejected)).but(registration(Registering)), "Failed",
			"C+ R-Registering M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"one that has it, and may lose it, is well and says so",
			assigned(says(allWell)).but(registration(Registered),
				func(o *Observed) { o.Registration.Message = "It is refused" }), "Succeeded",
			"C+ R+Registered M+ A+ P-Updated D-", "It is refused. All objects are applied and ready."},
		{"an unknown state is not ready", assigned(says(allWell)).but(registration("?")), "Progressing",
			"C+ R-Registering M+ A+ P+Updating D-", "The add-on agent has no credential for the hub yet."},

		{"a Lease that was never renewed is waited for, for as long as an image may take",
			assigned(says(allWell)).but(neverRenewed(599, 60)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"The add-on agent has not renewed its Lease yet."},
		{"but no longer: an agent that never starts is a failure", assigned(says(allWell)).but(neverRenewed(600, 60)),
			"Failed", "C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired", "The add-on agent has never renewed its Lease."},
		{"unless a Lease counts for longer", assigned(says(allWell)).but(neverRenewed(899, 900)), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on agent has not renewed its Lease yet."},
		{"and not before the time of the assignment is known",
			assigned(says(allWell)).but(neverRenewed(900, 60), func(o *Observed) { o.Since = time.Time{} }), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on agent has not renewed its Lease yet."},
		{"what is not applied cannot start", assigned(says(repeated)).but(neverRenewed(900, 60)), "Progressing",
			"C+ R+ M-Applying A-LeaseExpired P+Updating D-", "web: it says so."},
		{"one that is renewed is well, whatever its objects say", assigned(says(failed)).but(lease(179, 900)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "The add-on agent renews its Lease."},
		{"what is not applied fails all the same", assigned(says(rejected)).but(lease(1, 900)), "Failed",
			"C+ R+ M-ApplyFailed A+ P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"one that is renewed no more is a failure", assigned(says(allWell)).but(lease(180, 900)), "Failed",
			"C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired",
			"The add-on agent has not renewed its Lease since 2026-01-02T11:57:00Z."},
		{"one that was renewed before the update says nothing about it", assigned(says(allWell)).but(lease(100, 60)),
			"Progressing", "C+ R+ M+ A+ P+Updating D-", "The add-on agent has not renewed its Lease since the update."},
		{"and its agent has as long anew", assigned(says(allWell)).but(lease(200, 179)), "Progressing",
			"C+ R+ M+ A-LeaseExpired P+Updating D-", "The add-on agent has not renewed its Lease since 2026-01-02T11:56:40Z."},
		{"but no longer", assigned(says(allWell)).but(lease(300, 180)), "Failed", "C+ R+ M+ A-LeaseExpired " +
			"P-LeaseExpired D+LeaseExpired", "The add-on agent has not renewed its Lease since 2026-01-02T11:55:00Z."},
		{"the add-on says how long a Lease counts",
			assigned(says(allWell)).but(lease(30, 900), func(o *Observed) { o.Check.LeaseDurationSeconds = new(int32(30)) }),
			"Failed", "C+ R+ M+ A-LeaseExpired P-LeaseExpired D+LeaseExpired",
			"The add-on agent has not renewed its Lease since 2026-01-02T11:59:30Z."},

		{"its own function says that it is well", assigned(says(failed)).but(answer("Succeeded", "")), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "The add-on reports that it is healthy."},
		{"or that it has failed", assigned(says(allWell)).but(answer("Failed", "It is full")), "Failed",
			"C+ R+ M+ A-NotReady P-NotReady D+NotReady", "It is full."},
		{"or that it takes time", assigned(says(allWell)).but(answer("Progressing", "")), "Progressing",
			"C+ R+ M+ A-NotReady P+Updating D-", "The add-on reports that it is not ready yet."},
		{"or nothing", assigned(says(allWell)).but(answer("", "")), "Unknown", "C+ R+ M+ A?NotReady P+Updating D-",
			"The add-on does not report its health."},
		{"it is not asked while objects are not applied", assigned(says(repeated)).but(answer("Succeeded", "")),
			"Progressing", "C+ R+ M-Applying A+ P+Updating D-", "web: it says so."},

		{"with type None, applied is available", assigned(says(failed)).but(by(v1alpha1.HealthNone)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied."},
		{"and what is not is not", assigned(says(repeated)).but(by(v1alpha1.HealthNone)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: it says so."},

		{"its workloads are ready, whatever the rest says", assigned(runs(failed, "Deployment=True/Ready "+
			"DaemonSet=True/Ready Issuer=False/NotReady")).but(by(v1alpha1.HealthWorkloads)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied, and all workloads are ready."},
		{"without workloads it is the same as type None",
			assigned(runs(failed, "Issuer=False/NotReady")).but(by(v1alpha1.HealthWorkloads)), "Succeeded",
			"C+ R+ M+ A+ P-Updated D-", "All objects are applied."},
		{"one is on its way",
			assigned(runs(onItsWay, "Deployment=True/Ready StatefulSet=False/Progressing"),
				says(allWell)).but(by(v1alpha1.HealthWorkloads)), "Progressing", "C+ R+ M+ A-NotReady P+Updating D-",
			"apps/StatefulSet shop/b: 1 of 2 are ready."},
		{"one has failed, and another Work has a more severe state that the check does not cover",
			assigned(runs(failed, "Deployment=False/NotReady"),
				runs(failed, "Issuer=False/NotReady")).but(by(v1alpha1.HealthWorkloads)), "Failed",
			"C+ R+ M+ A-NotReady P-NotReady D+NotReady", "apps/Deployment shop/a: 1 of 2 are ready."},
		{"one on its way is more than something else that has failed",
			assigned(runs(failed, "Issuer=False/NotReady"),
				runs(onItsWay, "Issuer=True/Ready StatefulSet=False/Progressing")).but(by(v1alpha1.HealthWorkloads)),
			"Progressing", "C+ R+ M+ A-NotReady P+Updating D-", "apps/StatefulSet shop/b: 1 of 2 are ready."},
		{"what is not applied says more",
			assigned(runs(rejected, "Deployment=False/NotApplied")).but(by(v1alpha1.HealthWorkloads)), "Failed",
			"C+ R+ M-ApplyFailed A-NotReady P-ApplyFailed D+ApplyFailed", "web: it says so."},
		{"what is applied later than the rest is waited for",
			assigned(runs(repeated, "Deployment=True/Ready")).but(by(v1alpha1.HealthWorkloads)), "Progressing",
			"C+ R+ M-Applying A-NotReady P+Updating D-", "web: it says so."},
		{"workloads of a member that cannot be reached are unknown",
			assigned(runs(allWell, "Deployment=True/Ready")).but(by(v1alpha1.HealthWorkloads), outOfReach), "Unknown",
			"C+ R+ M+ A?MemberUnknown P-Updated D?MemberUnknown",
			"The member cannot be reached. Last report: web: it says so."},

		{"a hook runs before the removal: the configuration is no longer evaluated",
			assigned(says(allWell)).but(removal("PreDelete", false), problem("ConfigNotFound")), "Progressing",
			"C R M-Removing A-Removing P+PreDelete D-", "A Job runs."},
		{"a hook has failed", assigned(says(allWell)).but(removal("HookFailed", true)), "Progressing",
			"C R M-Removing A-Removing P+HookFailed D+HookFailed", "A Job runs."},
		{"it goes before that the member cannot be reached",
			assigned(says(allWell)).but(removal("", false), outOfReach, waits(rollout.HoldOrder), old), "Progressing",
			"C R M-Removing A-Removing P+Removing D-", "A Job runs."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := Assess(test.observed)
			require.Equal(t, test.health, got.Health)
			require.Equal(t, test.want, inShort(got.Conditions))
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
		{"no update while a configuration is missing", assigned().but(none, problem("ConfigNotFound")), "ManifestsApplied",
			"The add-on is not installed yet."},
		{"nor with a previous revision", assigned(says(allWell).but(unseen)).but(old, problem("ConfigNotFound")),
			"ManifestsApplied", "The member has not reported the status of the add-on yet."},
		{"it is where nothing is wrong", assigned(says(allWell)).but(old), "ManifestsApplied",
			"The add-on is being updated."},
		{"what keeps a credential from being renewed",
			assigned(says(allWell)).but(func(o *Observed) { o.Registration = Registration{Registered, "It is refused"} }),
			"RegistrationReady", "It is refused."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want, meta.FindStatusCondition(Assess(test.observed).Conditions, test.kind).Message)
		})
	}
}

// usual are the reasons that the tables omit.
var usual = map[string]string{"Configured": "Configured", "RegistrationReady": "NotRequired",
	"ManifestsApplied": "Applied", "Available": "Available", "Degraded": "AsDesired"}

func inShort(conditions []metav1.Condition) string {
	var parts []string
	for _, kind := range []string{"Configured", "RegistrationReady", "ManifestsApplied", "Available", "Progressing",
		"Degraded"} {
		part := kind[:1]
		for _, c := range conditions {
			if c.Type == kind {
				part += map[metav1.ConditionStatus]string{"True": "+", "False": "-", "Unknown": "?"}[c.Status]
				if c.Reason != usual[kind] {
					part += c.Reason
				}
			}
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestAfter(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		want     time.Duration
	}{
		{"Works report their own state", assigned(says(allWell)), 0},
		{"a Lease ends", assigned(says(allWell)).but(lease(100, 900)), 80 * time.Second},
		{"one that was never renewed has its time", assigned(says(allWell)).but(neverRenewed(500, 60)), 100 * time.Second},
		{"which has ended", assigned(says(allWell)).but(neverRenewed(600, 60)), 0},
		{"and has ended", assigned(says(allWell)).but(lease(180, 900)), 0},
		{"first what it counts for, then what its agent has since it was updated",
			assigned(says(allWell)).but(lease(100, 10)), 80 * time.Second},
		{"which is later", assigned(says(allWell)).but(lease(200, 10)), 170 * time.Second},
		{"other conditions report an unreachable member", assigned(says(allWell)).but(lease(100, 900), outOfReach), 0},
		{"what is being removed needs no Lease", assigned(says(allWell)).but(lease(100, 900), removal("", false)), 0},
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
	}), "what it is on its way to says nothing of its health")
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
