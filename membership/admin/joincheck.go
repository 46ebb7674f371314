package admin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// preflight runs the checks of a Join and collects the required state of both sides.
func (j *join) preflight(ctx context.Context) error {
	var p preflight
	hubID := p.reach(ctx, j.hub)
	memberID := p.reach(ctx, j.member)
	if j.ClusterID == "" {
		j.ClusterID = memberID
	}
	j.access = access{
		member: j.member, hubID: hubID, name: j.Name, namespace: j.MemberNamespace,
		clusterRole: j.ClusterRole, rules: j.Rules, lifetime: j.TokenLifetime, progress: j.progress,
	}
	if memberID != "" {
		p.may(ctx, j.member, j.access.rights())
		j.checkEndpoint(&p)
	}
	if hubID == "" || !p.served(ctx, j.hub) {
		return p.err()
	}
	p.may(ctx, j.hub, []right{
		{group: v1alpha1.GroupVersion.Group, resource: "memberclusters", verbs: "get list create patch delete"},
		{resource: "namespaces", verbs: "get create"},
		{resource: "secrets", namespace: j.ConnectionNamespace, verbs: "get create update"},
	})
	if memberID == "" || p.err() != nil {
		return p.err()
	}
	if err := j.checkNames(ctx, &p); err != nil {
		return err
	}
	if err := j.checkMember(ctx, &p); err != nil {
		return err
	}
	return p.err()
}

// checkEndpoint determines how the hub reaches the member.
func (j *join) checkEndpoint(p *preflight) {
	var err error
	if j.endpoint, err = endpointOf(j.member.config, j.JoinOptions); err == nil {
		err = j.endpoint.valid()
	}
	if err != nil {
		p.add(Finding{Check: "the member's address", Problem: err.Error(), Err: err,
			Fix: "set how the hub reaches the member: the https URL, the certificate authority, and the proxy if there is one"})
	}
}

// checkNames checks that the name is unused or belongs to the cluster, and that the cluster has no other name.
func (j *join) checkNames(ctx context.Context, p *preflight) (err error) {
	if j.cluster, err = found(ctx, j.hub, client.ObjectKey{Name: j.Name}, &v1alpha1.MemberCluster{}); err != nil {
		return err
	}
	if mc := j.cluster; mc != nil {
		j.checkCluster(p, mc)
	}
	others, err := j.others(ctx)
	if err != nil {
		return err
	}
	for _, other := range others {
		p.add(Finding{Check: "cluster ID", Problem: fmt.Sprintf("cluster %s is member %s already", j.ClusterID, other.Name),
			Err: ErrClusterTaken,
			Fix: fmt.Sprintf("use that name, or unjoin %s first", other.Name)})
	}
	secret, err := found(ctx, j.hub, client.ObjectKey{Namespace: j.ConnectionNamespace, Name: connectionSecret(j.Name)},
		&corev1.Secret{})
	if err != nil || secret == nil {
		return err
	}
	before := secret.Annotations[clusterAnnotation]
	switch {
	case isConnection(secret, j.Name) && len(secret.OwnerReferences) == 0 && before != "" && before != j.ClusterID:
		p.add(Finding{Check: "name",
			Problem: fmt.Sprintf("the hub still has access to cluster %s, which was %s before", before, j.Name),
			Err:     ErrNameTaken,
			Fix:     fmt.Sprintf("unjoin %s to remove the access, or choose another name", j.Name)})
	case !isConnection(secret, j.Name):
		p.add(Finding{Check: "name",
			Problem: fmt.Sprintf("the hub has a Secret %s/%s that a join has not created", secret.Namespace, secret.Name),
			Err:     ErrNameTaken,
			Fix:     "delete that Secret if it is not in use, or choose another name"})
	}
	return nil
}

func (j *join) checkCluster(p *preflight, mc *v1alpha1.MemberCluster) {
	switch {
	case mc.DeletionTimestamp != nil:
		p.add(Finding{Check: "name", Problem: fmt.Sprintf("member %s is being deleted", j.Name), Err: ErrNameTaken,
			Fix: "wait until it is deleted, or choose another name"})
	case mc.Spec.ClusterID != "" && mc.Spec.ClusterID != j.ClusterID:
		p.add(Finding{Check: "name",
			Problem: fmt.Sprintf("%s is the name of another cluster, with ID %s; this one has %s", j.Name, mc.Spec.ClusterID,
				j.ClusterID), Err: ErrNameTaken,
			Fix: "choose another name, or unjoin that cluster first"})
	case mc.Spec.JoinMode != v1alpha1.JoinPush && mc.Spec.Claim != "":
		p.add(Finding{Check: "cluster ID", Err: ErrClusterTaken,
			Problem: fmt.Sprintf("%s is a member already, with its own agent (joinMode %s)", j.Name, mc.Spec.JoinMode),
			Fix:     "unjoin the member first if the hub must run its agent"})
	}
}

// checkMember checks whether the member belongs to another hub or has its own agent.
func (j *join) checkMember(ctx context.Context, p *preflight) error {
	binding, err := found(ctx, j.member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return err
	}
	if binding != nil && binding.Annotations[hubAnnotation] != j.access.hubID {
		p.add(Finding{Check: "the member", Problem: "another hub has access to the member and runs its agent",
			Err: ErrClusterTaken,
			Fix: "unjoin the member from that hub; if that hub does not exist any more, clean the member first"})
	}
	if j.cluster != nil && j.cluster.Spec.JoinMode == v1alpha1.JoinPush {
		return nil
	}
	name, err := agentSecret(ctx, j.member, j.MemberNamespace, agentSecrets{})
	if err == nil && name != "" {
		p.add(Finding{Check: "the member", Problem: fmt.Sprintf("Secret %s/%s exists: an agent on the member has "+
			"joined a hub or is about to", j.MemberNamespace, name), Err: ErrClusterTaken,
			Fix: "unjoin the member from that hub; if that hub does not exist any more, clean the member first"})
	}
	return err
}
