package main

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// timeLimit is the timeout of one step. Most steps take a second.
const timeLimit = 60 * time.Second

// period is the heartbeat period in seconds. It is short for the demonstration; a real fleet would use a minute.
const period = 1

// once runs each step of the demonstration once.
func (f *fleet) once(ctx context.Context) error {
	began := time.Now()
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"join", f.join},
		{"place the shop on a member by its label", f.distribute},
		{"install an add-on where the shop is, and configure it", f.install},
		{"heal what is deleted on the member", f.heal},
		{"taint the member, and see the shop move", f.move},
		{"lose a heartbeat and find it again", f.loseHeartbeat},
		{"leave", f.leave},
		{"take back what is left, and look for left-overs", f.leftOvers},
	}
	for i, step := range steps {
		start := time.Now()
		say("[%d/%d] %s", i+1, len(steps), step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %q failed after %s: %w", step.name, time.Since(start).Round(time.Millisecond), err)
		}
		say("      done in %s", time.Since(start).Round(time.Millisecond))
	}
	say("All went well, in %s.", time.Since(began).Round(time.Millisecond))
	return nil
}

// join joins the members: the first one by a token that accepts it automatically, all others after an administrator's
// approval.
func (f *fleet) join(ctx context.Context) error {
	for i, m := range f.members {
		joinYAML, err := newJoinToken(ctx, f.client, m.name, v1alpha1.JoinTokenSpec{AutoAccept: i == 0,
			MaxUses: new(int32(1))})
		if err != nil {
			return err
		}
		if err := m.give(ctx, joinYAML); err != nil {
			return err
		}
		m.start()
	}
	for i, m := range f.members {
		cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
		err := until(ctx, timeLimit, m.name+" to send a JoinRequest", func(ctx context.Context) (bool, string) {
			err := f.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
			return err == nil, fmt.Sprint(err)
		})
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		cluster.Spec.HeartbeatPeriodSeconds = period
		if i > 0 {
			cluster.Spec.Accepted = new(true)
		}
		if err := f.client.Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("accept %s: %w", m.name, err)
		}
	}
	for _, m := range f.members {
		for _, kind := range []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy} {
			if err := f.untilCondition(ctx, m.name, kind, metav1.ConditionTrue); err != nil {
				return err
			}
		}
	}
	return f.show(ctx)
}

// loseHeartbeat stops the agent of the first member until the member is unhealthy, and starts it again.
func (f *fleet) loseHeartbeat(ctx context.Context) error {
	m := f.members[0]
	if err := m.stop(); err != nil {
		return err
	}
	if err := f.untilCondition(ctx, m.name, v1alpha1.ConditionHealthy, metav1.ConditionUnknown); err != nil {
		return err
	}
	if err := f.show(ctx); err != nil {
		return err
	}
	m.start()
	if err := f.untilCondition(ctx, m.name, v1alpha1.ConditionHealthy, metav1.ConditionTrue); err != nil {
		return err
	}
	return f.show(ctx)
}

// leave deletes all MemberClusters. A MemberCluster is deleted after its member has confirmed that it is clean.
func (f *fleet) leave(ctx context.Context) error {
	for _, m := range f.members {
		if err := f.client.Delete(ctx, &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}); err != nil {
			return fmt.Errorf("delete MemberCluster %s: %w", m.name, err)
		}
	}
	for _, m := range f.members {
		err := until(ctx, timeLimit, "MemberCluster "+m.name+" to be gone", func(ctx context.Context) (bool, string) {
			cluster := &v1alpha1.MemberCluster{}
			err := f.client.Get(ctx, client.ObjectKey{Name: m.name}, cluster)
			return client.IgnoreNotFound(err) == nil && err != nil, explain(cluster, v1alpha1.ConditionJoined)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leftOvers checks that a member that has left has no remaining objects.
func (f *fleet) leftOvers(ctx context.Context) error {
	if err := f.uninstall(ctx); err != nil {
		return err
	}
	if err := f.takeBack(ctx); err != nil {
		return err
	}
	for _, m := range f.members {
		err := until(ctx, timeLimit, m.name+" to be clean",
			func(ctx context.Context) (bool, string) { return noShop(ctx, m) })
		if err != nil {
			return err
		}
		// The agent deletes its Secrets after the hub has deleted the MemberCluster.
		err = until(ctx, timeLimit, "the agent of "+m.name+" to forget", func(ctx context.Context) (bool, string) {
			return nothing(ctx, m.client, &corev1.SecretList{}, client.InNamespace(agent.DefaultNamespace))
		})
		if err != nil {
			return err
		}
		if err := m.stop(); err != nil {
			return err
		}
		kept, err := workcrds.RemoveFromMember(ctx, m.client)
		if err != nil {
			return fmt.Errorf("clean %s: %w", m.name, err)
		}
		if kept != "" {
			say("      %s keeps %s", m.name, kept)
		}
		token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: m.name}}
		if err := f.client.Delete(ctx, token); err != nil {
			return fmt.Errorf("delete JoinToken %s: %w", m.name, err)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
		if err := m.client.Delete(ctx, namespace); err != nil {
			return fmt.Errorf("delete namespace %s on %s: %w", namespace.Name, m.name, err)
		}
	}
	members := client.HasLabels{membership.MemberLabel}
	for _, left := range []struct {
		list  client.ObjectList
		where client.ListOption
	}{
		{&v1alpha1.MemberClusterList{}, client.MatchingLabels{}},
		{&v1alpha1.MembershipList{}, client.MatchingLabels{}},
		{&workv1alpha1.WorkList{}, client.MatchingLabels{}},
		{&addonv1alpha1.MemberAddonList{}, client.MatchingLabels{}},
		{&v1alpha1.JoinRequestList{}, client.InNamespace(membership.RegistrationNamespace)},
		{&corev1.NamespaceList{}, members},
		{&rbacv1.RoleBindingList{}, members},
		{&corev1.ServiceAccountList{}, members},
		{&certificatesv1.CertificateSigningRequestList{}, members},
	} {
		err := until(ctx, timeLimit, "the hub to be clean", func(ctx context.Context) (bool, string) {
			return nothing(ctx, f.client, left.list, left.where)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nothing reports whether a list is empty. If not, it also returns a message with its items.
func nothing(ctx context.Context, c client.Client, list client.ObjectList, where client.ListOption) (bool, string) {
	if err := c.List(ctx, list, where); err != nil {
		return false, err.Error()
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return err == nil, fmt.Sprint(err)
	}
	first, err := meta.Accessor(items[0])
	if err != nil {
		return false, err.Error()
	}
	return false, fmt.Sprintf("%d of %T are left, the first of them %s/%s", len(items), items[0], first.GetNamespace(),
		first.GetName())
}

func (f *fleet) untilCondition(ctx context.Context, name, kind string, status metav1.ConditionStatus) error {
	return until(ctx, timeLimit, fmt.Sprintf("%s to be %s=%s", name, kind, status),
		func(ctx context.Context) (bool, string) {
			cluster := &v1alpha1.MemberCluster{}
			if err := f.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return false, err.Error()
			}
			return meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, kind, status), explain(cluster, kind)
		})
}

// explain returns the reason why a member does not have the expected condition.
func explain(cluster *v1alpha1.MemberCluster, kind string) string {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
		return fmt.Sprintf("%s=%s, %s: %s", kind, condition.Status, condition.Reason, condition.Message)
	}
	return fmt.Sprintf("it has no condition %s; its phase is %q", kind, cluster.Status.Phase)
}

func (f *fleet) show(ctx context.Context) error {
	table, err := f.table(ctx)
	if err == nil {
		say("%s", table+f.placed(ctx)+f.installed(ctx))
	}
	return err
}
