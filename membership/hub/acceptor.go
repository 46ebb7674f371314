package hub

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ask calls the Acceptor, which is code of the product, with a timeout. A panic is an error.
func ask(ctx context.Context, acceptor membership.Acceptor,
	request *v1alpha1.JoinRequest) (acceptance membership.Acceptance,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the Acceptor panicked: %v", panicked)
		}
	}()
	if acceptance, err = acceptor.Accept(ctx, request.DeepCopy()); err != nil {
		return acceptance, fmt.Errorf("ask the Acceptor: %w", err)
	}
	return acceptance, nil
}

// askAcceptor calls the Acceptor for a member whose agent the hub starts only after a decision. If the limit of
// concurrent calls is reached, the error is an ErrPending: a slow Acceptor must not delay the other members.
func (r *members) askAcceptor(ctx context.Context, o *memberObserved) error {
	if r.options.Acceptor == nil || !o.lifecycle.AsksAcceptor() {
		return nil
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return membership.ErrPending
	}
	acceptance, err := ask(ctx, r.options.Acceptor, requestFor(o.cluster))
	switch {
	case err == nil:
		o.lifecycle.Acceptance = acceptance
	case ctx.Err() != nil:
		return err // the hub ends, the Acceptor has not failed
	default:
		logf.FromContext(ctx).Error(err, "The Acceptor failed")
		o.lifecycle.AcceptorError = lifecycle.FormatMessage(err.Error())
	}
	return nil
}

// requestFor is the JoinRequest with which the Acceptor decides on a MemberCluster. It has no UID, unlike existing
// requests.
func requestFor(cluster *v1alpha1.MemberCluster) *v1alpha1.JoinRequest {
	return &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		Name: cluster.Name, MemberUID: cluster.UID, ClusterID: cluster.Spec.ClusterID, Labels: cluster.Labels,
	}}
}
