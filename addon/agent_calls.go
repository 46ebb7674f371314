package addon

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// callOf returns the key of the call of a function of an agent in Go for a MemberAddon or, without a namespace, for
// an Addon. Calls for MemberAddons of one add-on form a group, which may use a part of the workers, so an agent that
// does not respond leaves workers for other add-ons. An Addon is never reconciled concurrently.
func callOf(owner types.NamespacedName, addon, function string) calls.Key {
	k := calls.Key{Owner: owner, Function: function + " of add-on " + addon}
	if owner.Namespace != "" {
		k.Group = addon
	}
	return k
}

// version returns the version of the add-on's manifests. Empty: the agent is not Versioned.
func (c *shared) version(ctx context.Context, user types.NamespacedName, addon string) (string, error) {
	versioned, is := c.agents[addon].(Versioned)
	if !is {
		return "", nil
	}
	return calls.Do(ctx, c.calls, callOf(user, addon, "Version"), func(context.Context) (string, error) {
		return versioned.Version(), nil
	})
}

// validate calls the ConfigValidator of the add-on.
func (c *shared) validate(ctx context.Context, user types.NamespacedName, addon string,
	object *unstructured.Unstructured) error {
	validator, is := c.agents[addon].(ConfigValidator)
	if !is {
		return nil
	}
	call := callOf(user, addon, "ValidateConfig")
	call.Subject = object.GroupVersionKind().String() + " " + client.ObjectKeyFromObject(object).String()
	object = object.DeepCopy()
	_, err := calls.Do(ctx, c.calls, call, func(context.Context) (any, error) {
		return nil, validator.ValidateConfig(object)
	})
	return err
}

// own returns the configurations that a MemberAddon may reference. It records in the content why others are not
// allowed.
func (c *shared) own(ctx context.Context, m *v1alpha1.MemberAddon, made *content) (allowed []v1alpha1.ConfigReference) {
	if m == nil {
		return nil
	}
	for _, r := range m.Spec.Configs {
		if made.late || made.busy { // one function that does not return is enough to wait
			break
		}
		const function = "addon.Options.Allow"
		reference := config.Reference{ConfigReference: r, From: v1alpha1.FromMember}
		call := calls.Key{Owner: client.ObjectKeyFromObject(m), Function: function, Subject: reference.String(),
			Group: function}
		if _, err := calls.Do(ctx, c.calls, call, func(context.Context) (any, error) {
			return nil, c.Allow(m, r)
		}); err != nil {
			made.addFailure(v1alpha1.ReasonUnsupported, fmt.Sprintf("%s: %s", reference, err), err)
			continue
		}
		allowed = append(allowed, r)
	}
	return allowed
}

// await requeues the MemberAddon if a function of the agent has not returned yet.
func (l *memberReconciliation) await(c *content) {
	if l.result.busy = l.result.busy || c.busy; c.late {
		l.requeueAfter(pollInterval)
	}
}

// addFailure records the error of a function, and reports whether the error is temporary: the function has not returned
// yet, or could not be called.
func (c *content) addFailure(reason, message string, err error) (passing bool) {
	late, busy := errors.Is(err, calls.ErrOverdue), errors.Is(err, calls.ErrBusy)
	c.late, c.busy = c.late || late, c.busy || busy
	c.problems = append(c.problems, health.Problem{Reason: reason, Message: message, Retried: late || busy})
	return late || busy
}
