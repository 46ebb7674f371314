package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// bootstrapClient is the agent's access to the hub with the bootstrap credential.
type bootstrapClient struct {
	bootstrap *registration.Bootstrap // nil: unknown
	link      *link
	hub       *hubAPI
	signed    *v1alpha1.JoinRequest // with this bootstrap credential
	signedOf  *recordedRequest      // its source; nil: nothing is signed

	state  lifecycle.JoinRequestState
	since  time.Time             // since when without interruption
	answer *v1alpha1.JoinRequest // if state is JoinRequestIssued
	// unanswered is when the request was last observed without a credential; zero: never.
	unanswered time.Time
	why        string // the message of the hub, or of an error
	reason     string // the reason of the hub, or of this package, for a pending request; empty: none
	removal    removal
}

// connect prepares the connection with the bootstrap credential, and keeps it if the credential is the same.
func (d *bootstrapClient) connect(bootstrap *registration.Bootstrap, configure func(*rest.Config)) error {
	if d.bootstrap != nil && sameBootstrap(d.bootstrap, bootstrap) {
		return nil
	}
	d.disconnect()
	keeper, err := newKeeper(registration.Material{Token: bootstrap.Token}, nil)
	if err != nil {
		return err
	}
	link, err := newLink(hubConfig(bootstrap.Server, bootstrap.CA, configure), keeper)
	if err != nil {
		return err
	}
	hub, err := newHubAPI(link, bootstrap.Namespace)
	if err != nil {
		return err
	}
	d.bootstrap, d.link, d.hub = bootstrap, link, hub
	return nil
}

func sameBootstrap(a, b *registration.Bootstrap) bool {
	return a.Server == b.Server && bytes.Equal(a.CA, b.CA) && a.Token == b.Token && a.TokenName == b.TokenName &&
		bytes.Equal(a.Key, b.Key) && a.Namespace == b.Namespace && a.HubID == b.HubID && a.MoveFrom == b.MoveFrom
}

// disconnect closes all connections.
func (d *bootstrapClient) disconnect() {
	if d.link != nil {
		d.link.close()
	}
	d.bootstrap, d.link, d.hub, d.signed, d.signedOf = nil, nil, nil, nil, nil
}

// setState stores a new observation.
func (d *bootstrapClient) setState(state lifecycle.JoinRequestState, why string, now time.Time) {
	if d.state != state {
		d.since = now
	}
	d.state, d.why = state, why
}

// forget drops the observation.
func (d *bootstrapClient) forget() {
	d.state, d.answer, d.unanswered, d.why, d.reason = lifecycle.JoinRequestNotAsked, nil, time.Time{}, "", ""
}

// hubConfig returns the config for a hub, without a credential unless configure adds one.
func hubConfig(server string, ca []byte, configure func(*rest.Config)) *rest.Config {
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: bytes.Clone(ca)}, QPS: -1}
	configure(config)
	return config
}

// ensureRequest reads the JoinRequest, and creates it if it does not exist.
func (d *bootstrapClient) ensureRequest(ctx context.Context,
	request *v1alpha1.JoinRequest) (*v1alpha1.JoinRequest, error) {
	if d.state == lifecycle.JoinRequestNotAsked || d.state == lifecycle.JoinRequestNoRequest {
		created, err := d.hub.createRequest(ctx, request)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
	}
	theirs, err := d.hub.getRequest(ctx, request.Name)
	if apierrors.IsNotFound(err) {
		return nil, errNoRequest
	}
	return theirs, err
}

var errNoRequest = errors.New("the JoinRequest of this agent does not exist on the hub")

// requestState converts the answer to the agent's request to an observation. The request on the hub may be an older
// one of the same agent, because the name of a request is derived from the key of the agent.
//
// Only the agent's own hub, with a tombstone, can end a membership: an answer of another hub is
// JoinRequestDifferentHub, and the answer "Forgotten" of older hubs without tombstones is JoinRequestHeld.
func requestState(r record, bootstrap *registration.Bootstrap, mine,
	theirs *v1alpha1.JoinRequest) (state lifecycle.JoinRequestState, why string) {
	var reason string
	if c := meta.FindStatusCondition(theirs.Status.Conditions, v1alpha1.ConditionIssued); c != nil {
		reason, why = c.Reason, c.Message
	}
	moves := r.moves(bootstrap)
	if otherHub(theirs.Status.Hub, r.hubID()) && !moves || reason == v1alpha1.ReasonDifferentHub {
		return lifecycle.JoinRequestDifferentHub, why
	}
	switch theirs.Status.Answer {
	case v1alpha1.AnswerHeld:
		return lifecycle.JoinRequestHeld, why
	case answerOfEarlierHubs:
		if r.Member != nil {
			return lifecycle.JoinRequestHeld,
				"The hub is of a version that does not record which members left on request: upgrade " +
					"the hub."
		}
		return lifecycle.JoinRequestDeregisteredKept, why
	case v1alpha1.AnswerDenied:
		if r.Member == nil && reason == v1alpha1.ReasonTokenRefused && !sameProof(mine.Spec.Token, theirs.Spec.Token) {
			// The agent received another JoinToken since. Its request cannot be changed, but an agent that is not a member can
			// start over with another key, and therefore with a request of another name.
			return lifecycle.JoinRequestDeregisteredKept, why
		}
		return lifecycle.JoinRequestDenied, why
	case v1alpha1.AnswerDeregistered:
		if r.hubID() != "" && theirs.Status.Hub == nil {
			return lifecycle.JoinRequestHeld, "The answer does not contain the identity of its hub."
		}
		if moves {
			return lifecycle.JoinRequestHeld, "The hub to move to has a record that the member left that hub."
		}
		// The answer may also be for an older request: a claim belongs to one membership only.
		if theirs.Status.MemberUID != "" {
			return lifecycle.JoinRequestDeregisteredKept, why
		}
		return lifecycle.JoinRequestDeregistered, why
	case v1alpha1.AnswerIssued:
		if asked, want := theirs.Spec.Credential, mine.Spec.Credential; !bytes.Equal(asked.PublicKey, want.PublicKey) ||
			!bytes.Equal(asked.CertificateRequest, want.CertificateRequest) {
			return lifecycle.JoinRequestHeld, olderRequest
		}
		return lifecycle.JoinRequestIssued, why
	default:
		return lifecycle.JoinRequestPending, why
	}
}

// answerOfEarlierHubs is the answer of earlier versions of the hub to the agent of every unknown member.
const answerOfEarlierHubs v1alpha1.JoinAnswer = "Forgotten"

func sameProof(a, b *v1alpha1.TokenProof) bool {
	return a != nil && b != nil && a.Name == b.Name && bytes.Equal(a.MAC, b.MAC)
}

const olderRequest = "An older JoinRequest of this agent is still on the hub. The hub removes it in time and then " +
	"accepts the next one."

// differentHubError reports a bootstrap credential of another hub.
type differentHubError struct{ mine, theirs string }

func (e differentHubError) Error() string {
	return fmt.Sprintf("the agent is a member of hub %s, and the bootstrap credential is that of hub %s", e.mine, e.theirs)
}

// homeError is an error in the agent's own cluster before the JoinRequest could be sent.
type homeError struct{ err error }

func (e homeError) Error() string { return e.err.Error() }
func (e homeError) Unwrap() error { return e.err }

// requestFailure converts an error of a JoinRequest to an observation and a message.
func requestFailure(err error) (lifecycle.JoinRequestState, string) {
	switch {
	case errors.As(err, new(differentHubError)):
		return lifecycle.JoinRequestDifferentHub, err.Error()
	case errors.Is(err, errNoRequest):
		return lifecycle.JoinRequestNoRequest, err.Error()
	case errors.Is(err, errNoBootstrap), errors.As(err, new(*membership.InvalidError)):
		return lifecycle.JoinRequestNoCredential, err.Error()
	case errors.As(err, new(homeError)):
		return lifecycle.JoinRequestNotAskable, cause.Of(err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsInvalid(err),
		apierrors.IsNotFound(err):
		// A create that returns NotFound means that the namespace or the resource does not exist.
		return lifecycle.JoinRequestUnfit, err.Error()
	case apierrors.IsForbidden(err) && quota(err):
		return lifecycle.JoinRequestFull, err.Error()
	case refusal(err):
		return lifecycle.JoinRequestRefused, err.Error()
	default:
		return lifecycle.JoinRequestUnreachable, cause.Of(err)
	}
}

// requestReason returns the reason why the agent waits or was refused, given the observation and the JoinRequest on
// the hub; nil: there is none. It returns "" if there is no reason to report.
func requestReason(state lifecycle.JoinRequestState, theirs *v1alpha1.JoinRequest) string {
	switch state {
	case lifecycle.JoinRequestHeld, lifecycle.JoinRequestPending, lifecycle.JoinRequestDenied:
		issued := meta.FindStatusCondition(theirs.Status.Conditions, v1alpha1.ConditionIssued)
		if issued == nil || issued.Status == metav1.ConditionTrue || issued.Reason == v1alpha1.ReasonIssuing {
			return ""
		}
		return issued.Reason
	case lifecycle.JoinRequestDifferentHub:
		return v1alpha1.ReasonDifferentHub
	case lifecycle.JoinRequestUnreachable:
		return agentstate.HubUnreachable
	case lifecycle.JoinRequestNoCredential:
		return agentstate.BootstrapMissing
	case lifecycle.JoinRequestRefused:
		return agentstate.BootstrapRefused
	case lifecycle.JoinRequestFull:
		return agentstate.HubFull
	case lifecycle.JoinRequestUnfit:
		return agentstate.HubUnfit
	default:
		return ""
	}
}

// quota reports whether a ResourceQuota prevented the creation. The API server returns only a message for this, and no
// code.
func quota(err error) bool {
	return strings.Contains(err.Error(), "exceeded quota: ") || strings.Contains(err.Error(), "status unknown for quota: ")
}

// joinRequest returns the recorded request with the proof of the bootstrap credential and the signature.
func joinRequest(r record, claim *registration.ClaimKey, bootstrap *registration.Bootstrap) (*v1alpha1.JoinRequest,
	error) {
	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		ClusterID:  r.ClusterID,
		Name:       r.member().Name, // a member requests its current name
		Labels:     r.Request.Labels,
		MemberUID:  r.Request.MemberUID,
		HubID:      r.hubID(),
		Credential: r.Request.Credential,
	}}
	if r.moves(bootstrap) {
		request.Spec.MemberUID, request.Spec.HubID = "", "" // of another hub
	}
	later, err := r.laterKeys()
	if err != nil {
		return nil, err
	}
	if err := registration.Sign(request, claim, bootstrap, later...); err != nil {
		return nil, fmt.Errorf("create the JoinRequest: %w", err)
	}
	return request, nil
}
