package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// attempts bounds how often an apply is repeated because another client wrote the object meanwhile, such as a
// controller that maintains its status. All attempts together take a quarter of a second.
const attempts = 6

// applyOne observes an object, decides and acts. If no write has removed an owner reference of an earlier release, a
// further write removes it, because Kubernetes would delete the object with the owner.
func (e *Engine) applyOne(ctx context.Context, owner Owner, t *task) Change {
	change := e.reconcileObject(ctx, owner, t)
	if t.observed == nil || !t.observed.marks.former || t.observed.deleting {
		return change
	}
	if err := e.detach(ctx, owner, t); err != nil && change.Err == nil && !changedConcurrently(err) {
		return t.failed(fmt.Errorf("remove the owner reference of an earlier release: %w", err))
	}
	return change
}

func (e *Engine) reconcileObject(ctx context.Context, owner Owner, t *task) Change {
	if t.err != nil {
		return t.failed(t.err)
	}
	err := e.observeObject(ctx, owner, t)
	backoff := newBackoff()
	for range attempts {
		if err != nil {
			return t.failed(err)
		}
		m := e.recall(owner, t)
		d := decide(t.Object, applyHistory{hash: t.hash, recorded: t.recorded, accepted: m.accepted(t)}, t.observed)
		now := e.options.Clock.Now()
		if d.heals() {
			d.lost = append(lostFields(m.written, t.observed, owner.FieldOwner), t.addedFields()...)
			if change, waits := m.delayHeal(t, d, now); waits {
				return change
			}
		}
		if change, waits := m.rejection(t, d, now); waits {
			return change
		}
		change, actErr := e.execute(ctx, owner, t, d)
		if actErr == nil {
			return e.recall(owner, t).contested(change, now)
		}
		if e.revisesAssumption(ctx, owner, t, actErr) {
			continue
		}
		if recreates(t, actErr) {
			if actErr = e.deleteOne(ctx, t, metav1.DeletePropagationForeground); actErr == nil {
				return t.change(reportOnly(Skipped, v1alpha1.ReasonTerminating,
					"The manifest changes an immutable field: the object is being deleted "+
						"and will be recreated."))
			}
		}
		if !changedConcurrently(actErr) {
			if d.writes() && (permanent(actErr) || forbidden(actErr)) {
				m = e.recall(owner, t)
				m.rejected = m.rejected.again(t.hash, t.observed.versionOrNone(), now, actErr)
				e.remember(owner, t, m)
			}
			return t.failed(actErr)
		}
		pause(ctx, &backoff)
		err = e.fetchMetadata(ctx, owner, t) // the watch may be behind
	}
	return t.failed(errors.New("other clients keep modifying the object"))
}

// revisesAssumption reads an object that was assumed not to exist, after its creation failed, and reports whether the
// engine has to decide again.
func (e *Engine) revisesAssumption(ctx context.Context, owner Owner, t *task, cause error) bool {
	if !t.assumed {
		return false
	}
	t.assumed = false
	if err := e.fetchMetadata(ctx, owner, t); err != nil {
		return false // the error of the creation is more specific
	}
	if t.observed != nil { // the engine must not assume it again
		m := e.recall(owner, t)
		m.existed = true
		e.remember(owner, t, m)
	}
	return t.observed != nil || changedConcurrently(cause)
}

// execute carries out a decision. Each write is bound to the observed state: to the UID of the object, also to its
// version if the write contains values of the object, or to the absence of the object.
func (e *Engine) execute(ctx context.Context, owner Owner, t *task, d decision) (Change, error) {
	switch d.move {
	case doNothing:
		return t.change(d), nil
	case compare:
		return e.compareOne(ctx, owner, t, d)
	case create:
		config := stamp(t.Manifest, owner, t.hash)
		config.SetResourceVersion(noVersion)
		return e.write(ctx, owner, t, d, config)
	case applyIfSame:
		diffs, live, err := e.diffOne(ctx, owner, t)
		if err != nil {
			return Change{}, err
		}
		if len(diffs) > 0 {
			change := t.change(reportOnly(Conflict, v1alpha1.ReasonInTheWay,
				"The object exists, was not applied by this Work, and differs from the manifest. Set takeover to Always to take "+
					"over the object."))
			change.Diffs, change.Live.Object = diffs, live
			return change, nil
		}
		return e.applyToLive(ctx, owner, t, d, live)
	}
	if d.move == applyForced || d.move == applyShared {
		if err := e.seizeAdditions(ctx, owner, t); err != nil {
			return Change{}, err
		}
	}
	if len(t.IgnoredFields) == 0 {
		config := stamp(t.Manifest, owner, t.hash)
		config.SetUID(t.observed.uid)
		return e.write(ctx, owner, t, d, config)
	}
	live, err := e.read(ctx, t.id)
	if err != nil {
		return Change{}, err
	}
	return e.applyToLive(ctx, owner, t, d, live)
}

// noVersion is a resourceVersion that no object has. An apply with it fails unless the object is absent.
const noVersion = "1"

// applyToLive applies the manifest to an object that was read. The write fails if the object has changed since.
func (e *Engine) applyToLive(ctx context.Context, owner Owner, t *task, d decision,
	live *unstructured.Unstructured) (Change, error) {
	config := stamp(t.wanted(live, owner), owner, t.hash)
	config.SetUID(t.observed.uid)
	config.SetResourceVersion(live.GetResourceVersion())
	return e.write(ctx, owner, t, d, config)
}

// write applies a config and returns the result.
func (e *Engine) write(ctx context.Context, owner Owner, t *task, d decision,
	config *unstructured.Unstructured) (Change, error) {
	before := t.observed
	answer, err := e.applyRepaired(ctx, owner, t, config, d.move == applyForced || d.move == applyIfSame)
	if conflicts := conflictsOf(err); len(conflicts) > 0 {
		rival := before != nil && anyOf(conflicts, before.marks.rivals)
		switch {
		case d.move == create: // another client created it first
			return Change{}, newConflict(t, err)
		case d.move == applyShared && !t.KeepConflicts && !rival:
			// The conflict is not with the other owner, unless the object has changed since it was observed.
			config.SetResourceVersion(before.version)
			answer, err = e.applyRepaired(ctx, owner, t, config, true)
		case t.Drift == v1alpha1.DriftReport && before.marks.ours && !rival:
			change := t.change(reportOnly(Skipped, v1alpha1.ReasonDrifted, driftMessage(conflicts)))
			change.Drifted, change.Conflicts = true, conflicts
			return change, nil
		default:
			change := t.change(reportOnly(Conflict, v1alpha1.ReasonConflict, conflictMessage(conflicts)))
			change.Conflicts = conflicts
			return change, nil
		}
	}
	if err != nil {
		return Change{}, err
	}
	takenOver := before != nil && !before.marks.ours && before.uid != t.recorded.uid && !before.marks.shared
	if takenOver {
		if answer, err = e.relinquish(ctx, owner, t, answer); err != nil {
			return Change{}, err
		}
	}
	wrote := before == nil || before.version != answer.GetResourceVersion()
	t.observed = e.rememberWrite(owner, t, answer, d, wrote)
	d.action, d.reason = Configured, v1alpha1.ReasonApplied
	switch {
	case before == nil:
		d.action = Created
	case !wrote:
		d.action = Unchanged
	}
	change := t.change(d)
	change.Live.Object = answer
	change.Drifted = d.drifted && d.action != Unchanged
	return change, nil
}

// applyRepaired applies a config. If the managed fields of the object make that fail, it repairs them and applies
// again.
func (e *Engine) applyRepaired(
	ctx context.Context, owner Owner, t *task, config *unstructured.Unstructured, force bool,
) (*unstructured.Unstructured, error) {
	for range 2 { // an object may have both stale versions and residue
		answer, err := e.apply(ctx, owner, config, force)
		if err == nil {
			return answer, nil
		}
		if !force && !violatesSchema(err) { // the apply must not take fields from other managers
			return nil, err
		}
		again, failed := e.repaired(ctx, owner, t, config, err)
		if failed != nil {
			return nil, failed
		}
		if !again {
			return nil, err
		}
	}
	return e.apply(ctx, owner, config, force)
}

// apply sends one server-side apply. The config is not changed.
func (e *Engine) apply(ctx context.Context, owner Owner, config *unstructured.Unstructured, force bool,
	options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	if force {
		options = append(options, client.ForceOwnership)
	}
	return ssa.Apply(ctx, e.client, config, client.FieldOwner(owner.FieldOwner), options...)
}

// diffOne returns the differences between an object and its manifest. Our own marks are no differences.
func (e *Engine) diffOne(ctx context.Context, owner Owner,
	t *task) ([]v1alpha1.FieldDiff, *unstructured.Unstructured, error) {
	live, err := e.read(ctx, t.id)
	if err != nil {
		return nil, nil, err
	}
	config := t.wanted(live, owner)
	if t.observed.marks.ours || t.observed.uid == t.recorded.uid {
		config = stamp(config, owner, cmp.Or(t.observed.marks.applied, t.hash)) // a changed hash is no difference
	}
	diffs, err := e.dryRun(ctx, owner, config, live)
	return diffs, live, err
}

// compareOne reports the differences between an object and its manifest. It compares again only if either has changed.
func (e *Engine) compareOne(ctx context.Context, owner Owner, t *task, d decision) (Change, error) {
	change := t.change(d)
	m := e.recall(owner, t)
	if m.compared.hash == t.hash && m.compared.version == t.observed.version {
		change.Diffs = m.compared.diffs
	} else {
		var err error
		change.Diffs, change.Live.Object, err = e.diffOne(ctx, owner, t)
		refused := err != nil && permanent(err) && !changedConcurrently(err)
		if err != nil && !refused {
			return Change{}, err
		}
		m.compared = comparison{hash: t.hash, version: change.Live.Object.GetResourceVersion(), diffs: change.Diffs}
		if refused {
			m.compared.rejected = err
		}
		e.remember(owner, t, m)
	}
	if err := m.compared.rejected; err != nil {
		failed := t.failed(err)
		failed.Diffs, failed.Live.Object = change.Diffs, change.Live.Object
		if len(change.Diffs) > 0 {
			failed.Message = fmt.Sprintf("%s The object differs from the manifest: %s.", failed.Message, summary(change.Diffs))
		}
		return failed, nil
	}
	drift := d.action == Skipped
	switch {
	case len(change.Diffs) > 0 && drift:
		change.Reason, change.Message = v1alpha1.ReasonDrifted,
			fmt.Sprintf("The object was changed on the member: %s. Set drift to Correct to revert the changes.",
				summary(change.Diffs))
	case len(change.Diffs) > 0:
		change.Reason, change.Message = v1alpha1.ReasonDiffers, fmt.Sprintf("The object differs from the manifest: %s.",
			summary(change.Diffs))
	case drift: // other managers own the fields now, with the values of the manifest
		change.Action, change.Reason, change.Drifted = Unchanged, v1alpha1.ReasonApplied, false
	default:
		change.Reason, change.Message = v1alpha1.ReasonObserved, "The object matches the manifest."
	}
	return change, nil
}
