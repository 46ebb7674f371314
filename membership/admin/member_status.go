package admin

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// memberStatus returns whether a member has joined and, if not, the first condition that explains why.
func memberStatus(cluster *v1alpha1.MemberCluster) (seen, error) {
	if cluster.Spec.Accepted != nil && !*cluster.Spec.Accepted {
		return seen{}, fmt.Errorf("member %s: spec.accepted is false: %w", cluster.Name, ErrDenied)
	}
	if cluster.DeletionTimestamp != nil || cluster.Spec.State == v1alpha1.StateLeave {
		return seen{}, fmt.Errorf("member %s has spec.state Leave: %w", cluster.Name, ErrDenied)
	}
	conditions := cluster.Status.Conditions
	if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionJoined) {
		return seen{done: true, detail: "the member has joined"}, nil
	}
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionReachable, v1alpha1.ConditionInstalled,
		v1alpha1.ConditionReadyToJoin, v1alpha1.ConditionJoined} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return seen{detail: fmt.Sprintf("%s (%s)", strings.TrimSuffix(c.Message, "."), c.Reason)}, nil
		}
	}
	return seen{
		detail: "the hub has not processed the MemberCluster yet: check that the controller of the hub is running",
	}, nil
}

// leaving describes the blockers of a leave.
func leaving(cluster *v1alpha1.MemberCluster) string {
	leave := cluster.Status.Leave
	if leave == nil || leave.Ended && cluster.DeletionTimestamp == nil {
		return "the hub has not started the leave yet: check that the controller of the hub is running"
	}
	var words strings.Builder
	switch {
	case leave.Forced:
		words.WriteString("the deadline has passed, and the hub continues without " + awaited(leave.Waiting))
	case leave.Waiting != "":
		words.WriteString("the hub waits for " + awaited(leave.Waiting))
	default:
		words.WriteString("the hub removes its objects of the member")
	}
	if n := len(leave.Remaining); n > 0 {
		const shown = 3
		fmt.Fprintf(&words, ": %s", strings.Join(leave.Remaining[:min(n, shown)], ", "))
		if n > shown {
			fmt.Fprintf(&words, " and %d more", n-shown)
		}
	}
	if !leave.Forced {
		fmt.Fprintf(&words, " (until %s at the latest)", leave.Deadline.UTC().Format("15:04:05 MST"))
	}
	return words.String()
}

// awaited returns the name of the blocker of a leave: a gate, or a step of the hub.
func awaited(waiting string) string {
	switch waiting {
	case "":
		return "the remaining objects"
	case "agent", "namespace":
		return "the member's " + waiting
	default:
		return waiting
	}
}

func checkName(field, name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return &membership.InvalidError{Field: field, Problem: "must be a DNS label of at most 63 characters: " +
			"lower-case letters, digits and '-', starting and ending with a letter or digit"}
	}
	return nil
}

// checkHub checks the name of a hub, which may be empty.
func checkHub(name string) error {
	if name == "" {
		return nil
	}
	return checkName("Hub", name)
}

func orDefault[T comparable](value, otherwise T) T { return cmp.Or(value, otherwise) }

// eachItem calls a function with the names of the objects in a list.
func eachItem(list client.ObjectList, call func(name string)) error {
	objects, err := meta.ExtractList(list)
	for _, object := range objects {
		accessor, failed := meta.Accessor(object)
		if failed != nil {
			return failed
		}
		call(accessor.GetName())
	}
	return err
}
