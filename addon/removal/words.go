package removal

import (
	"fmt"
	"time"

	"github.com/muster-sdk/muster/addon/internal/words"
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

// locked reports whether nothing but an access that cannot be revoked keeps it past its deadline.
func (r *removal) locked() bool {
	return r.stage == credentials && !r.Forced && r.fails() && (r.ForceNow || r.overdue())
}

func (r *removal) message() string {
	var text string
	switch {
	case r.stage == finalizer && r.Forced:
		text = words.Join("It is removed.", r.why())
	case r.stage == finalizer:
		text = "It is removed."
	case r.mustForce() && !r.Forced:
		text = words.Join(r.why(), r.awaited(), "It is removed without that.")
	case r.Forced && r.letGo():
		text = words.Join(r.why(), "What is left of it on the member stays there.", r.trouble())
	case r.Forced && r.stage != credentials:
		text = words.Join(r.why(), fmt.Sprintf("%s has until %s to take it back; what is left then stays there.", r.who(), at(r.deadline.Add(Patience))), r.trouble())
	case r.Forced:
		text = words.Join(r.why(), r.awaited())
	case r.locked():
		text = words.Join(r.why(), r.awaited(), "It stays until its access has ended.")
	default:
		text = words.Join(r.awaited(), fmt.Sprintf("It has until %s.", at(r.deadline)))
	}
	return bounded.Text(text, words.MaxSentence)
}

// why says why it is forced.
func (r *removal) why() string {
	switch {
	case r.ForceNow:
		return "It is not waited for: the leave of the member was forced, or its removalDeadlineSeconds is 0."
	case r.Member == Gone:
		return r.who() + " is gone."
	}
	return "The deadline of its removal has passed."
}

// awaited says what is waited for.
func (r *removal) awaited() string {
	var text string
	switch r.stage {
	case hooks:
		return words.Join(r.jobs(), r.function(), r.trouble())
	case works:
		text = "It is being taken back."
	case hookWorks:
		text = "What its hooks have left is being taken back."
	default:
		return words.Join("Its access to the hub is being revoked.", r.trouble())
	}
	return words.Join(text, r.trouble(), r.away())
}

// trouble says why what is to be done does not succeed.
func (r *removal) trouble() string {
	if !r.fails() {
		return ""
	}
	return words.Sentence(bounded.Text("That fails, and is tried again: "+r.Failed.Error, words.MaxPart/2))
}

func (r *removal) away() string {
	switch r.Member {
	case Reachable, Gone:
		return ""
	}
	return r.who() + " cannot be reached."
}

// who is waited for.
func (r *removal) who() string {
	if r.Hosting != "" {
		return "Member " + r.Hosting + ", which hosts its agent,"
	}
	return "The member"
}

func (r *removal) jobs() string {
	if !r.awaitsJobs() {
		return ""
	}
	text := "A hook runs before it is removed."
	if r.Jobs.State == Failed {
		text = "A hook has failed, and is run again."
	}
	return words.Join(text, said(r.Jobs), r.away())
}

func (r *removal) function() string {
	if !r.awaitsFunc() {
		return ""
	}
	text := "The add-on says goodbye before it is removed."
	if r.Func.State == Failed {
		text = "The add-on has failed to say goodbye, and is asked again."
	}
	return words.Join(text, said(r.Func))
}

func said(h Hook) string {
	return words.Sentence(bounded.Text(h.Message, words.MaxPart/2))
}

func at(when time.Time) string { return when.UTC().Format(time.RFC3339) }
