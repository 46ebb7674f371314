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

// finding is the observed state of the connection to a member: a reason of the condition Reachable, and a message.
// Zero: unknown.
type finding struct{ reason, message string }

// maxFailures is the number of consecutive failed probes after which a reachable member becomes unreachable.
const maxFailures = 3

// evaluateResponse evaluates a response to GET path, or an error. Status is 0 without a response.
func evaluateResponse(path string, status int, err error) finding {
	switch {
	case status == 0:
		return finding{v1alpha1.ReasonUnreachable, fmt.Sprintf("The member does not respond: %s.", cause.Of(err))}
	case status == http.StatusUnauthorized:
		return finding{v1alpha1.ReasonUnauthorized, "The member refuses the credential: put another credential into the " +
			"Secret."}
	case status == http.StatusForbidden:
		return finding{v1alpha1.ReasonUnauthorized,
			fmt.Sprintf("The credential has no permission to get %s on the member: grant this permission.", path)}
	case err != nil:
		return finding{v1alpha1.ReasonUnreachable,
			fmt.Sprintf("The member's response to GET %s is invalid: %v.", path, err)}
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		return finding{v1alpha1.ReasonUnreachable,
			fmt.Sprintf("The member responds to GET %s with %d %s.", path, status, http.StatusText(status))}
	default:
		return finding{v1alpha1.ReasonReachable, "The hub reaches the member."}
	}
}

// after returns the state to report after a probe, given the condition and the number of consecutive failures
// including this one. A single missing response does not change the state; a response always does.
func (f finding) after(cluster *v1alpha1.MemberCluster, failures int) finding {
	before := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReachable)
	if f.reason == v1alpha1.ReasonUnreachable && failures < maxFailures && before != nil &&
		before.Status == metav1.ConditionTrue {
		return finding{}
	}
	return f
}

// stabilized returns the state to report after a probe, given the reported and the previous one. Alternating messages
// of one reason are one error: a new message is reported after it was observed twice.
func (f finding) stabilized(reported, before finding) finding {
	if f.reason == "" || f.reason == reported.reason && f != before {
		return reported
	}
	return f
}

// counted returns the reason of a member in the metrics; empty: the hub does not connect to it.
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

// desiredConditions returns the desired conditions of a member, and whether they have changed. A new observedGeneration
// alone is not a change.
func desiredConditions(cluster *v1alpha1.MemberCluster, f finding, now metav1.Time) ([]metav1.Condition, bool) {
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

// desiredEndpoint returns the endpoint to report, and whether it has changed. A nil way means that there is no
// connection. A value from before a restart stays until the member has responded.
func desiredEndpoint(cluster *v1alpha1.MemberCluster, w *way) (*v1alpha1.Endpoint, bool) {
	is := cluster.Status.Endpoint
	switch {
	case w == nil:
		return nil, is != nil
	case !w.known.Load():
		return is, false
	}
	endpoint := w.live.Access().Endpoint()
	if !withinLimits(&endpoint) {
		return nil, is != nil
	}
	return &endpoint, !equality.Semantic.DeepEqual(is, &endpoint)
}

// withinLimits reports whether an endpoint is within the limits of the API.
func withinLimits(e *v1alpha1.Endpoint) bool {
	const url, name, ca = 2048, 253, 65536 // the limits of MemberCluster
	return len(e.Server) <= url && len(e.ProxyURL) <= url && len(e.TLSServerName) <= name &&
		base64.StdEncoding.EncodedLen(len(e.CABundle)) <= ca
}

// kubeSystemUID is the property with the UID of kube-system that an agent reports. Package agent uses the same name.
const kubeSystemUID = "membership.muster.dev/kube-system-uid"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// identityOf returns the UID of the member's namespace kube-system, or "" if it is unknown: the value that the agent
// reports or, if there is none, the cluster ID if it has the form of a UID.
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

// recognized returns whether the responding cluster is the expected one, as a finding.
func recognized(want, got string) finding {
	if want == "" || want == got {
		return finding{v1alpha1.ReasonReachable, "The hub reaches the member."}
	}
	return finding{v1alpha1.ReasonOtherCluster, fmt.Sprintf(
		"The Secret connects to another cluster: the namespace kube-system of that cluster has the UID %s, and that of the "+
			"member has %s. Correct the Secret, or join that cluster with another name.", got, want)}
}

// joined reports whether a member has joined.
func joined(cluster *v1alpha1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionJoined)
}
