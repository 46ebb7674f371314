package removal

import (
	"fmt"
	"time"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
)

func (r *removal) reason() string {
	switch {
	case r.Forced || r.stage != finalizer && r.mustForce():
		return v1alpha1.ReasonDeadlineExceeded
	case r.stage == hooks && (r.awaitsJobs() && r.Jobs.State == Failed || r.awaitsFunc() && r.Func.State == Failed):
		return v1alpha1.ReasonHookFailed
	case r.stage == hooks:
		return v1alpha1.ReasonPreDelete
	case r.locked():
		return v1alpha1.ReasonRevokeFailed
	}
	return v1alpha1.ReasonRemoving
}

// locked reports whether past the deadline only a credential that cannot be revoked blocks the removal.
func (r *removal) locked() bool {
	return r.stage == credentials && !r.Forced && r.fails() && (r.ForceNow || r.overdue())
}

func (r *removal) message() string {
	var text string
	switch {
	case r.stage == finalizer && r.Forced:
		text = messages.Join("The add-on is removed.", r.why())
	case r.stage == finalizer:
		text = "The add-on is removed."
	case r.mustForce() && !r.Forced:
		text = messages.Join(r.why(), r.awaited(), "The removal continues without waiting.")
	case r.Forced && r.releasesWorks():
		text = messages.Join(r.why(), "The remaining objects stay on the member.", r.actionError())
	case r.Forced && r.stage != credentials:
		text = messages.Join(r.why(), fmt.Sprintf("%s has until %s to remove the objects; the remaining objects then "+
			"stay on the member.", r.memberName(), at(r.deadline.Add(Timeout))), r.actionError())
	case r.Forced:
		text = messages.Join(r.why(), r.awaited())
	case r.locked():
		text = messages.Join(r.why(), r.awaited(), "The MemberAddon stays until the access is revoked.")
	default:
		text = messages.Join(r.awaited(), fmt.Sprintf("The deadline is %s.", at(r.deadline)))
	}
	return bounded.Text(text, messages.MaxMessage)
}

// why returns the reason for which the removal is forced.
func (r *removal) why() string {
	switch {
	case r.ForceNow:
		return "The removal is forced: the leave of the member was forced, or removalDeadlineSeconds is 0."
	case r.Member == Gone:
		return r.memberName() + " no longer exists."
	}
	return "The deadline of the removal has passed."
}

// awaited describes what the removal waits for.
func (r *removal) awaited() string {
	var text string
	switch r.stage {
	case hooks:
		return messages.Join(r.jobs(), r.function(), r.actionError())
	case works:
		text = "The member is removing the objects."
	case hookWorks:
		text = "The member is removing the objects of the hooks."
	default:
		return messages.Join("The access of the add-on agent to the hub is being revoked.", r.actionError())
	}
	return messages.Join(text, r.actionError(), r.away())
}

// actionError describes the error of a required action.
func (r *removal) actionError() string {
	if !r.fails() {
		return ""
	}
	return messages.Message(bounded.Text("Retrying after an error: "+r.Failed.Error, messages.MaxPart/2))
}

func (r *removal) away() string {
	switch r.Member {
	case Reachable, Gone:
		return ""
	}
	return r.memberName() + " cannot be reached."
}

// memberName returns the name of the member that must act.
func (r *removal) memberName() string {
	if r.Hosting != "" {
		return "Member " + r.Hosting + ", which hosts the add-on agent,"
	}
	return "The member"
}

func (r *removal) jobs() string {
	if !r.awaitsJobs() {
		return ""
	}
	text := "A pre-delete hook is running."
	if r.Jobs.State == Failed {
		text = "A pre-delete hook has failed and is retried."
	}
	return messages.Join(text, hookMessage(r.Jobs), r.away())
}

func (r *removal) function() string {
	if !r.awaitsFunc() {
		return ""
	}
	text := "The add-on prepares its removal."
	if r.Func.State == Failed {
		text = "The preparation of the removal has failed and is retried."
	}
	return messages.Join(text, hookMessage(r.Func))
}

func hookMessage(h Hook) string {
	return messages.Message(bounded.Text(h.Message, messages.MaxPart/2))
}

func at(when time.Time) string { return when.UTC().Format(time.RFC3339) }
