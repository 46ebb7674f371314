package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// reportInput is the input of the status of a Work.
type reportInput struct {
	generation int64
	suspended  bool
	refused    string // why nothing of the Work can be applied
	forbidden  string // why it must not be
	late       bool   // a wave has not become ready in time
	cleaning   bool   // the Work is being deleted
	left       []apply.Change
	withheld   string // why the remaining objects must not be deleted at this time
	orphans    int    // the number of objects that are kept although the Work does not contain them
	outcomes   []outcome
	before     *v1alpha1.WorkStatus
	now        time.Time
}

// outcome is the result for one manifest.
type outcome struct {
	id         v1alpha1.ResourceIdentifier
	refused    string
	reason     string // of that; empty: it is invalid
	warning    string // about a manifest that is applied nevertheless
	change     apply.Change
	evaluation *evaluation // nil: the object does not exist
}

// forReport returns the input of the report for a result.
func (r result) forReport(work *v1alpha1.Work, before *v1alpha1.WorkStatus, now time.Time) reportInput {
	f := reportInput{
		generation: work.Generation, suspended: work.Spec.Suspend, before: before, now: now,
		left: r.pruning.left, withheld: r.pruning.withheld, orphans: r.orphans,
		late: r.waiting > 0 && r.waiting >= work.Spec.Waves.Timeout(),
	}
	if len(r.plan.refused) > 0 {
		f.refused = r.plan.refused.ToAggregate().Error()
	}
	if r.forbidden != nil {
		f.forbidden = r.forbidden.Error()
	}
	for i, m := range r.plan.manifests {
		o := outcome{id: m.id, refused: m.refused, reason: m.reason, warning: m.warning}
		switch {
		case m.object >= 0 && r.changes != nil:
			o.change = r.changes[m.object]
			o.id = o.change.Object
		case f.forbidden != "":
			o.change = apply.Change{Object: m.id, Action: apply.Skipped, Reason: v1alpha1.ReasonAgentForbidden}
		case m.object >= 0:
			o.change = apply.Change{Object: m.id, Action: apply.Skipped, Reason: v1alpha1.ReasonSuspended,
				Message: "The Work is suspended."}
		}
		if evaluation, evaluated := r.evaluations[i]; evaluated {
			o.evaluation = &evaluation
		}
		f.outcomes = append(f.outcomes, o)
	}
	return f
}

// readyRule derives the condition Ready of a Work.
var readyRule = readycondition.Rule{
	Required: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionAvailable},
	Adverse:  []string{v1alpha1.ConditionProgressing}, Failure: v1alpha1.ConditionDegraded,
}

// report returns the status of a Work, and whether a retry is needed. It is pure.
func report(f reportInput) (v1alpha1.WorkStatus, bool) {
	status := v1alpha1.WorkStatus{ObservedGeneration: f.generation, Conditions: slices.Clone(f.before.Conditions)}
	if was := findCondition(status.Conditions, v1alpha1.ConditionProgressing); was != nil &&
		was.ObservedGeneration != f.generation {
		was.LastTransitionTime = metav1.NewTime(f.now) // the progress of each generation is timed separately
	}
	before := map[v1alpha1.ResourceIdentifier][]metav1.Condition{}
	for _, manifest := range f.before.Manifests {
		before[manifest.ResourceIdentifier] = manifest.Conditions
	}
	c := count{}
	var short shortened
	for i, o := range f.outcomes {
		id := short.identifier(o.id)
		manifest := v1alpha1.ManifestStatus{
			Ordinal: int32(i), ResourceIdentifier: id, Conditions: slices.Clone(before[id]),
			Diffs: short.diffs(o.change.Diffs),
		}
		applied, available := o.applied(), o.available()
		for _, condition := range []metav1.Condition{applied, available} {
			condition.ObservedGeneration = f.generation
			set(&manifest.Conditions, condition, f.now)
		}
		if o.evaluation != nil {
			manifest.Feedback = o.evaluation.values
		}
		status.Manifests = append(status.Manifests, manifest)
		c.add(o, applied, available)
	}
	status.Ready = fmt.Sprintf("%d/%d", c.ready, len(f.outcomes))
	for _, condition := range f.conditions(&c) {
		condition.ObservedGeneration = f.generation
		set(&status.Conditions, condition, f.now)
	}
	readyRule.Set(&status.Conditions, f.generation, f.now, nil)
	if c.ending == 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionComplete)
	}
	status.Message, status.Truncated = f.message(&c), short.String()
	return trim(status), c.retry || len(f.left) > 0 && f.withheld == ""
}

func set(conditions *[]metav1.Condition, condition metav1.Condition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	meta.SetStatusCondition(conditions, condition)
}

func findCondition(conditions []metav1.Condition, kind string) *metav1.Condition {
	return meta.FindStatusCondition(conditions, kind)
}

// applied returns the condition Applied of a manifest.
func (o outcome) applied() metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse,
		Reason: o.change.Reason, Message: bounded(o.change.Message),
	}
	switch {
	case o.refused != "":
		condition.Reason, condition.Message = cmp.Or(o.reason, v1alpha1.ReasonInvalid), bounded(o.refused)
	case o.change.Done() && o.change.Reason != v1alpha1.ReasonContested:
		condition.Status = metav1.ConditionTrue
	}
	if o.warning != "" && o.refused == "" {
		condition.Message = bounded(strings.TrimSpace(condition.Message + " " + o.warning))
	}
	return condition
}

// available returns the condition Available of a manifest.
func (o outcome) available() metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonNotApplied}
	if o.evaluation == nil {
		return condition
	}
	condition.Message = bounded(o.evaluation.ready.Message)
	switch o.evaluation.ready.Status {
	case readiness.Ready:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ReasonReady
	case readiness.Progressing:
		condition.Reason = v1alpha1.ReasonProgressing
	case readiness.Failed:
		condition.Reason = v1alpha1.ReasonNotReady
	default:
		condition.Status, condition.Reason = metav1.ConditionUnknown, v1alpha1.ReasonUnknown
	}
	if o.evaluation.problem != "" && condition.Message == "" {
		condition.Message = bounded(o.evaluation.problem)
	}
	return condition
}

// count is a summary of the manifests of a Work.
type count struct {
	applied, ready, progressing, ending, ended int

	firstUnapplied          *outcome // the first that is not applied
	firstUnappliedCondition metav1.Condition
	firstUnready            *outcome // the first that is applied and not ready
	firstUnreadyCondition   metav1.Condition
	firstFailed             *outcome // the first that needs an action of a user
	firstFailedCondition    metav1.Condition
	retry                   bool
}

func (c *count) add(o outcome, applied, available metav1.Condition) {
	if applied.Status == metav1.ConditionTrue {
		c.applied++
	} else if c.firstUnapplied == nil || c.firstUnappliedCondition.Reason == v1alpha1.ReasonPending &&
		applied.Reason != v1alpha1.ReasonPending {
		c.firstUnapplied, c.firstUnappliedCondition = &o, applied
	}
	switch {
	case available.Status == metav1.ConditionTrue:
		c.ready++
	case applied.Status == metav1.ConditionTrue && c.firstUnready == nil:
		c.firstUnready, c.firstUnreadyCondition = &o, available
	}
	if o.evaluation != nil && o.evaluation.ready.Ends {
		c.ending++
		if o.evaluation.ready.Complete {
			c.ended++
		}
	}
	if available.Reason == v1alpha1.ReasonProgressing {
		c.progressing++
	}
	switch applied.Reason {
	case v1alpha1.ReasonPending, v1alpha1.ReasonTerminating, v1alpha1.ReasonFailed:
		c.progressing++
	}
	if c.firstFailed == nil {
		switch {
		case failing(applied):
			c.firstFailed, c.firstFailedCondition = &o, applied
		case available.Reason == v1alpha1.ReasonNotReady:
			c.firstFailed, c.firstFailedCondition = &o, available
		}
	}
	c.retry = c.retry || worthRetry(applied.Reason) ||
		available.Status == metav1.ConditionUnknown && applied.Reason != v1alpha1.ReasonCompleted
}

// failing reports whether the failure of a manifest that is not applied needs an action of a user.
func failing(applied metav1.Condition) bool {
	switch applied.Reason {
	case v1alpha1.ReasonApplied, v1alpha1.ReasonExists, v1alpha1.ReasonObserved, v1alpha1.ReasonPending,
		v1alpha1.ReasonSuspended,
		v1alpha1.ReasonCompleted, v1alpha1.ReasonTerminating, v1alpha1.ReasonFailed, "":
		return false
	default:
		return true
	}
}

// worthRetry reports whether a retry can help without a prior change of a watched object.
func worthRetry(reason string) bool {
	switch reason {
	case v1alpha1.ReasonFailed, v1alpha1.ReasonUnknownKind, v1alpha1.ReasonForbidden, v1alpha1.ReasonRejected,
		v1alpha1.ReasonConflict,
		v1alpha1.ReasonInTheWay, v1alpha1.ReasonTerminating, v1alpha1.ReasonNotFound:
		return true
	default:
		return false
	}
}

// conditions returns the conditions of the Work.
func (f reportInput) conditions(c *count) []metav1.Condition {
	applied := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonApplied}
	available := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonReady}
	progressing := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonAsDesired}
	degraded := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonAsDesired}
	message := f.message(c)
	setFalse := func(condition *metav1.Condition, reason string) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, message
		switch { // the culprit of Degraded may be another object than the one that the condition is about
		case f.refused != "" || f.forbidden != "" || f.cleaning:
		case condition.Type == v1alpha1.ConditionApplied && c.firstUnapplied != nil:
			condition.Message = f.prefixed(f.unapplied(c))
		case condition.Type == v1alpha1.ConditionAvailable && c.firstUnready != nil && c.firstUnapplied == nil:
			condition.Message = f.prefixed(f.unready(c))
		}
	}
	setTrue := func(condition *metav1.Condition, reason string) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reason, message
	}
	switch {
	case f.refused != "":
		setFalse(&applied, v1alpha1.ReasonInvalid)
		setFalse(&available, v1alpha1.ReasonNotApplied)
		setTrue(&degraded, v1alpha1.ReasonInvalid)
	case f.forbidden != "":
		setFalse(&applied, v1alpha1.ReasonAgentForbidden)
		setFalse(&available, v1alpha1.ReasonNotApplied)
		setTrue(&degraded, v1alpha1.ReasonAgentForbidden)
	case f.cleaning:
		setFalse(&applied, v1alpha1.ReasonCleaningUp)
		setFalse(&available, v1alpha1.ReasonCleaningUp)
		setTrue(&progressing, cmp.Or(f.withheldReason(), v1alpha1.ReasonCleaningUp))
	default:
		if c.firstUnapplied != nil {
			setFalse(&applied, c.firstUnappliedCondition.Reason)
		}
		switch {
		case c.ready == len(f.outcomes):
		case c.firstUnready != nil && c.firstUnapplied == nil:
			setFalse(&available, c.firstUnreadyCondition.Reason)
		default:
			setFalse(&available, v1alpha1.ReasonNotApplied)
		}
		switch {
		case c.progressing > 0 || len(f.left) > 0 && f.withheld == "":
			setTrue(&progressing, v1alpha1.ReasonProgressing)
		case len(f.left) > 0:
			setTrue(&progressing, v1alpha1.ReasonPruneWithheld)
		}
		switch {
		case f.late:
			setTrue(&degraded, v1alpha1.ReasonTimeout)
		case f.suspended: // a suspended Work may differ from the member
		case c.firstFailed != nil:
			setTrue(&degraded, c.firstFailedCondition.Reason)
		}
	}
	if f.suspended {
		progressing = metav1.Condition{
			Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonSuspended, Message: message,
		}
	}
	all := []metav1.Condition{applied, available, progressing, degraded}
	if c.ending > 0 {
		complete := metav1.Condition{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonProgressing}
		if c.ended == c.ending && c.ready == len(f.outcomes) {
			complete.Status, complete.Reason = metav1.ConditionTrue, v1alpha1.ReasonCompleted
		}
		all = append(all, complete)
	}
	return all
}

func (f reportInput) withheldReason() string {
	if f.withheld == "" {
		return ""
	}
	return v1alpha1.ReasonPruneWithheld
}

// message returns the message of the status of the Work.
func (f reportInput) message(c *count) string {
	var text string
	switch {
	case f.refused != "":
		text = "The Work is not applied: " + f.refused
	case f.forbidden != "":
		text = "The member does not permit the Work: " + f.forbidden
	case f.cleaning && f.withheld != "":
		text = fmt.Sprintf("The deletion of %s is withheld: %s", objects(len(f.left)), f.withheld)
	case f.cleaning && len(f.left) > 0:
		text = fmt.Sprintf("Waiting for the deletion of %s. %s: %s", objects(len(f.left)), f.left[0].Object,
			f.left[0].Message)
	case f.cleaning:
		text = "The objects of the Work are being deleted."
	case c.firstFailed != nil && c.firstFailedCondition.Type == v1alpha1.ConditionAvailable:
		text = fmt.Sprintf("%s: %s", c.firstFailed.id, c.firstFailedCondition.Message) +
			remainder(len(f.outcomes)-c.ready-1, "not ready")
	case c.firstFailed != nil:
		text = fmt.Sprintf("%s: %s", c.firstFailed.id, messageOrReason(c.firstFailedCondition)) +
			remainder(len(f.outcomes)-c.applied-1, "not applied")
	case c.firstUnapplied != nil:
		text = f.unapplied(c)
	case c.firstUnready != nil:
		text = f.unready(c)
	case len(f.left) > 0 && f.withheld != "":
		text = fmt.Sprintf("The deletion of %s that the Work no longer contains is withheld: %s", objects(len(f.left)),
			f.withheld)
	case len(f.left) > 0:
		text = fmt.Sprintf("%s: %s", f.left[0].Object, f.left[0].Message) + remainder(len(f.left)-1, "being deleted")
	default:
		text = fmt.Sprintf("%s applied and ready.", objects(len(f.outcomes)))
	}
	if f.orphans > 0 {
		text += fmt.Sprintf(" The member keeps %s that the Work does not contain, because no deletion was requested. See "+
			"the AppliedWork of the Work.", objects(f.orphans))
	}
	return f.prefixed(text)
}

// unapplied returns a message about the first object that is not applied.
func (f reportInput) unapplied(c *count) string {
	return fmt.Sprintf("%s: %s", c.firstUnapplied.id, messageOrReason(c.firstUnappliedCondition)) +
		remainder(len(f.outcomes)-c.applied-1, "not applied")
}

// unready returns a message about the first object that is applied and not ready.
func (f reportInput) unready(c *count) string {
	return fmt.Sprintf("%s: %s", c.firstUnready.id, c.firstUnreadyCondition.Message) +
		remainder(len(f.outcomes)-c.ready-1, "not ready")
}

func (f reportInput) prefixed(text string) string {
	if f.suspended {
		text = "Suspended: nothing is changed on the member. " + text
	}
	return bounded(text)
}

// messageOrReason returns the message of a condition, or its reason if the message is empty.
func messageOrReason(condition metav1.Condition) string {
	return cmp.Or(condition.Message, condition.Reason)
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func remainder(n int, what string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%d more %s)", n, what)
}
