package fleet

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// finding is what is known of the way to a member: a reason of the condition Reachable, and why. The zero value: nothing yet.
type finding struct{ reason, message string }

// patience is how many looks in a row have to fail before a member that was reachable is not.
const patience = 3

// heard says what an answer to GET path, or an error, means. Status is 0 without an answer.
func heard(path string, status int, err error) finding {
	switch {
	case status == 0:
		return finding{v1alpha1.ReasonUnreachable, fmt.Sprintf("The member does not answer: %s.", cause.Of(err))}
	case status == http.StatusUnauthorized:
		return finding{v1alpha1.ReasonUnauthorized, "The member refuses the credential: put another one into the Secret."}
	case status == http.StatusForbidden:
		return finding{v1alpha1.ReasonUnauthorized, fmt.Sprintf("The credential may not get %s on the member: permit that.", path)}
	case err != nil:
		return finding{v1alpha1.ReasonUnreachable, fmt.Sprintf("The member's answer to GET %s makes no sense: %v.", path, err)}
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return finding{v1alpha1.ReasonUnreachable, fmt.Sprintf("The member answers GET %s by %d %s.", path, status, http.StatusText(status))}
	default:
		return finding{v1alpha1.ReasonReachable, "The hub reaches the member."}
	}
}

// after is what to make of a look, given what the condition says and how many looks have failed in a row, this one included. A member
// that does not answer once may do so the next time; what it says counts at once.
func (f finding) after(cluster *v1alpha1.MemberCluster, failures int) finding {
	before := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReachable)
	if f.reason == v1alpha1.ReasonUnreachable && failures < patience && before != nil && before.Status == metav1.ConditionTrue {
		return finding{}
	}
	return f
}

// settled is what to tell after a look, given what is told and what the look before found. Troubles that take turns, such as a host that
// sometimes refuses and sometimes is silent, are one trouble: other words for the same reason count when they came twice.
func (f finding) settled(told, before finding) finding {
	if f.reason == "" || f.reason == told.reason && f != before {
		return told
	}
	return f
}

// counted is the reason that a member is counted by; empty: by none, since the hub is not to reach it.
func (f finding) counted(cluster *v1alpha1.MemberCluster) string {
	switch {
	case cluster.Spec.KubeConfigSecretRef == nil:
		return ""
	case f.reason == "":
		return connecting
	default:
		return f.reason
	}
}

// turned returns the conditions of a member as they are to be, and whether that is something new. Another generation of the
// spec is not, by itself: what is taken from it shows in the words.
func turned(cluster *v1alpha1.MemberCluster, f finding, now metav1.Time) ([]metav1.Condition, bool) {
	conditions := slices.Clone(cluster.Status.Conditions)
	if cluster.Spec.KubeConfigSecretRef == nil {
		return conditions, meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionReachable)
	}
	if f.reason == "" {
		return conditions, false
	}
	status := metav1.ConditionFalse
	if f.reason == v1alpha1.ReasonReachable {
		status = metav1.ConditionTrue
	}
	before := meta.FindStatusCondition(conditions, v1alpha1.ConditionReachable)
	if before != nil && before.Status == status && before.Reason == f.reason && before.Message == f.message {
		return conditions, false
	}
	return conditions, meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: v1alpha1.ConditionReachable, Status: status, Reason: f.reason, Message: f.message,
		ObservedGeneration: cluster.Generation, LastTransitionTime: now,
	})
}

// placed returns where a member is to be shown to be, and whether that is something new, given the way to it; nil: there is none. What was found out before a
// restart counts until the member has answered.
func placed(cluster *v1alpha1.MemberCluster, w *way) (*v1alpha1.Endpoint, bool) {
	is := cluster.Status.Endpoint
	switch {
	case w == nil:
		return nil, is != nil
	case !w.known.Load():
		return is, false
	}
	endpoint := w.live.Access().Endpoint()
	if !fits(&endpoint) {
		return nil, is != nil
	}
	return &endpoint, !equality.Semantic.DeepEqual(is, &endpoint)
}

// fits reports whether a status has room for an endpoint.
func fits(e *v1alpha1.Endpoint) bool {
	const url, name, ca = 2048, 253, 65536 // as MemberCluster has them
	return len(e.Server) <= url && len(e.ProxyURL) <= url && len(e.TLSServerName) <= name && base64.StdEncoding.EncodedLen(len(e.CABundle)) <= ca
}

// kubeSystemUID is the property by which an agent tells the UID of its kube-system. That of package agent has the same name.
const kubeSystemUID = "membership.muster.dev/kube-system-uid"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// identityOf is the UID of the member's kube-system, or empty where that is not known: what the member's agent says or, before there is one, the
// cluster ID, where it looks like one.
func identityOf(cluster *v1alpha1.MemberCluster) string {
	for _, property := range cluster.Status.Properties {
		if property.Name == kubeSystemUID {
			return property.Value
		}
	}
	if uuid.MatchString(cluster.Spec.ClusterID) {
		return cluster.Spec.ClusterID
	}
	return ""
}

// recognized says whether what answered is the cluster that it is to be.
func recognized(want, got string) finding {
	if want == "" || want == got {
		return finding{v1alpha1.ReasonReachable, "The hub reaches the member."}
	}
	return finding{v1alpha1.ReasonOtherCluster, fmt.Sprintf(
		"The Secret leads to another cluster: its kube-system has the UID %s, and the member's has %s. Correct the Secret, or join that cluster under a name of its own.", got, want)}
}

// joined reports whether a member is in the fleet.
func joined(cluster *v1alpha1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionJoined)
}
