package placement

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// errStale is returned if the input of a decision has changed. The placement is decided again.
var errStale = errors.New("the PlacementDecisions were changed by another client")

var errTaken = errors.New("an object with this name does not belong to the placement: delete the object, or rename " +
	"the placement")

// described returns the kind and the name of a placement for an error.
func described(placement *v1alpha1.Placement) string {
	return scope.PlacementKind(placement.Namespace).Kind + " " + scope.Name(client.ObjectKeyFromObject(placement))
}

// persistent reports whether an error of a write requires an action of a user.
func persistent(err error) bool {
	return errors.Is(err, errTaken) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// confirmedFor is the time in which a changed decision may be written after it was confirmed. It is shorter than the
// time until another leader takes over, so a leader that was paused does not write an old decision.
const confirmedFor = 10 * time.Second

// confirm returns an error unless the Placement on the API server is still the one that was decided. A changed decision
// can be based on an old policy, because the cache lags or the leader was paused. If another leader has decided the new
// policy, its status could make the old decision look complete, and after a restart the controller would start from the
// old decision.
func (d *decisionController) confirm(ctx context.Context, placement *v1alpha1.Placement) error {
	current, err := scope.ReadPlacement(ctx, d.api.live, client.ObjectKeyFromObject(placement))
	if err != nil {
		return fmt.Errorf("confirm the decision of %s: %w", described(placement), err)
	}
	if current.UID != placement.UID || current.Generation != placement.Generation || current.DeletionTimestamp != nil {
		return errStale
	}
	return nil
}

// write creates, updates and deletes PlacementDecisions. confirmed is the time at which the decision was confirmed, if
// it was changed.
func (d *decisionController) write(
	ctx context.Context, placement *v1alpha1.Placement, before []*v1alpha1.PlacementDecision, laid []decision.Slice,
	confirmed time.Time,
) error {
	for _, c := range changes(placement, before, laid) {
		if c.old != nil && d.Clock.Now().Sub(confirmed) > confirmedFor {
			return errStale
		}
		if err := d.writeSlice(ctx, placement, c); err != nil {
			return err
		}
	}
	return nil
}

func (d *decisionController) writeSlice(ctx context.Context, placement *v1alpha1.Placement, c change) error {
	if c.want == nil {
		end := d.decisions.beginDeletion(c.old)
		err := client.IgnoreNotFound(d.api.client.Delete(ctx, c.old.DeepCopy(), precondition.Unchanged(c.old)))
		if end(err == nil); err != nil {
			return fmt.Errorf("delete PlacementDecision %s: %w", client.ObjectKeyFromObject(c.old), err)
		}
		return nil
	}
	name := client.ObjectKeyFromObject(c.want)
	if c.old == nil {
		err := d.put(c.want, func(object client.Object) error {
			return scope.CreateChild(ctx, d.api.client, object)
		})
		if apierrors.IsAlreadyExists(err) {
			err = d.resolveConflict(ctx, placement, name)
		}
		if err != nil {
			return fmt.Errorf("create PlacementDecision %s: %w", name, err)
		}
		return nil
	}
	err := d.put(c.want, func(object client.Object) error { return d.api.client.Update(ctx, object) })
	if apierrors.IsNotFound(err) {
		d.decisions.observeDeletion(c.old)
		err = errStale
	}
	if err != nil {
		return fmt.Errorf("write PlacementDecision %s: %w", name, err)
	}
	return nil
}

// put writes an object and records it in the cache before and after.
func (d *decisionController) put(want *v1alpha1.PlacementDecision, write func(client.Object) error) error {
	got := want.DeepCopy()
	end := d.decisions.beginWrite(want)
	if err := write(got); err != nil {
		end(nil)
		return err
	}
	end(got)
	return nil
}

// resolveConflict handles a PlacementDecision whose name exists already. An object of this placement is added to the
// cache. An object of an earlier placement with this name is deleted, as the garbage collector would do later. In both
// cases the placement is decided again immediately. An object of another owner stays, and causes an error.
func (d *decisionController) resolveConflict(ctx context.Context, placement *v1alpha1.Placement,
	name types.NamespacedName) error {
	there := &v1alpha1.PlacementDecision{}
	if err := d.api.live.Get(ctx, name, there); err != nil {
		return errors.Join(errStale, client.IgnoreNotFound(err))
	}
	k := client.ObjectKeyFromObject(placement).String()
	switch {
	case there.DeletionTimestamp != nil:
		return errors.New("the former object with this name is still being deleted")
	case metav1.IsControlledBy(there, placement):
		d.decisions.observe(there)
	case ownerOf(there) == k:
		// The Placement in this process may be the old one: the PlacementDecision of a newer Placement stays.
		current, err := scope.ReadPlacement(ctx, d.api.live, client.ObjectKeyFromObject(placement))
		if err != nil || current.UID != placement.UID {
			return errors.Join(errStale, client.IgnoreNotFound(err))
		}
		if err := d.api.client.Delete(ctx, there,
			precondition.Unchanged(there)); client.IgnoreNotFound(err) != nil {
			return err
		}
		d.decisions.observeDeletion(there)
	default:
		return errTaken
	}
	d.queue.Add(k, 0)
	return errStale
}

// report writes a status if it changed, and Events for transitions.
func (d *decisionController) report(ctx context.Context, placement *v1alpha1.Placement, p *placementState,
	v summary) error {
	status := v.status(placement, metav1.NewTime(d.Clock.Now()))
	if reflect.DeepEqual(placement.Status, status) {
		return nil
	}
	next := placement.DeepCopy()
	next.Status = status
	// The optimistic lock prevents a write to another Placement with this name.
	err := d.api.client.Status().Patch(ctx, scope.PlacementObject(next),
		client.MergeFromWithOptions(scope.PlacementObject(placement), client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", described(placement), err)
	}
	p.latest = next
	for _, alarm := range newlyFalse(&placement.Status, &status) {
		// +event:reason=the reason of the condition PropertiesKnown, ClustersObserved or ClustersAllowed
		// +event:message=the message of the condition
		d.recorder.Eventf(scope.PlacementObject(placement), nil, corev1.EventTypeWarning, alarm.Reason, "Decide", "%s",
			alarm.Message)
	}
	if transitioned(&placement.Status, &status) {
		kind := corev1.EventTypeNormal
		if !v.scheduled {
			kind = corev1.EventTypeWarning
		}
		// +event:reason=the reason of the condition Scheduled
		// +event:type=Warning if the condition is False, else Normal
		// +event:message=the message of the condition
		d.recorder.Eventf(scope.PlacementObject(placement), nil, kind, v.reason, "Decide", "%s",
			bounded.Text(v.message, maxMessage))
	}
	return nil
}

// message returns the scheduler's message about a decision. Computing it requires a decision without shortcuts, so an
// existing message is used as long as its numbers are the same. After a restart the existing message is the one in the
// status.
func (d *decisionController) message(ctx context.Context, a *attempt, s *step, currentMessage string) string {
	p, result, about := a.p, &s.result, numbersOf(a.placement, s)
	if p.message.text != "" && p.message.numbers == about {
		return p.message.text
	}
	note := ""
	// The numbers in a status include neither the served APIs nor the health of clusters.
	if p.message.text == "" && len(a.placement.Spec.Policy.RequiredAPIs) == 0 && about.unhealthy == 0 &&
		!strings.Contains(currentMessage, failoverUnset) && !strings.Contains(currentMessage, aboutBindings) {
		note = currentMessage
	}
	if note == "" {
		diagnosis, err := result.Diagnose(ctx)
		if err == nil {
			evicted(diagnosis, a.snapshot, s.excluded)
			note = diagnosis.String()
		} else {
			note = fmt.Sprintf("%d of %d clusters chosen", len(result.Chosen), result.Total)
		}
	}
	p.message = cachedMessage{note + unreportedAPIs(about.silent) + unhealthyStay(about.unhealthy) +
		a.access.candidates(result), about}
	return p.message.text
}

// evicted adds to a diagnosis the clusters that evictions excluded from the decision.
func evicted(diagnosis *scheduler.Diagnosis, snapshot *scheduler.Snapshot, excluded []string) {
	_, excluded = identify(excluded)
	for _, name := range excluded {
		if _, there := snapshot.Slot(name); there {
			diagnosis.Total++
			diagnosis.Clusters = append(diagnosis.Clusters, scheduler.ClusterDiagnosis{Name: name, Outcome: scheduler.Rejected,
				Reason: "is evicted"})
		}
	}
}
