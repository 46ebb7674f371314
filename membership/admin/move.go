package admin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
)

// Move gives a member the bootstrap credential of another hub with a request to move there. The agent stays with its
// hub until the other hub has accepted it, and then leaves all objects on the member unchanged: objects keep their
// UIDs, and a Work of the other hub with the same namespace and name adopts the objects of the former one.
//
// Move does not contact the former hub. Delete the MemberCluster there after the move; the agent has left that hub, so
// the leave ends at its deadline and deletes nothing on the member.
//
// Options, errors and permissions are those of [Register], and get on the agent's Secret. Replace is implied. The
// error wraps [agent.ErrNotRegistered] if the cluster is not a member. Move returns an error for a member whose hub
// has no identity yet: upgrade that hub first. It does nothing for a member of the same hub.
func Move(ctx context.Context, config *rest.Config, bootstrap *registration.Bootstrap, o RegisterOptions) error {
	if bootstrap == nil || bootstrap.HubID == "" {
		return &membership.InvalidError{Field: "bootstrap", Problem: "must be the bootstrap credential of a hub that " +
			"has an identity"}
	}
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	member, err := connect(Member, config)
	if err != nil {
		return err
	}
	is, err := registrationOf(ctx, member, orDefault(o.Namespace, agent.DefaultNamespace), o.Hub)
	switch {
	case err != nil:
		return err
	case is.HubID == "":
		return fmt.Errorf("move member %s: its hub at %s has no identity yet, so a move cannot name it: upgrade that hub",
			is.Name, is.Server)
	case is.HubID == bootstrap.HubID:
		reporter(o.Progress).report(Step{Doing: "move member " + is.Name, Detail: "the member belongs to this hub already",
			Done: true})
		return nil
	}
	request := *bootstrap
	request.MoveFrom, o.Replace = is.HubID, true
	return Register(ctx, config, &request, o)
}

// registrationOf reads the record of the agent for a hub on the member.
func registrationOf(ctx context.Context, member *cluster, namespace, hub string) (*agent.Registration, error) {
	key := client.ObjectKey{Namespace: namespace, Name: secretsFor(hub).store}
	secret, err := found(ctx, member, key, &corev1.Secret{})
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, fmt.Errorf("read Secret %s of the member at %s: %w", key, member.config.Host, agent.ErrNotRegistered)
	}
	is, err := agent.ParseRegistration(secret)
	if err != nil {
		return nil, fmt.Errorf("member at %s: %w", member.config.Host, err)
	}
	return is, nil
}
