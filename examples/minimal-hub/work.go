package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	workagent "github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/leave"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// shop is what every member gets: as one would write it for kubectl.
const shop = `
manifests:
- apiVersion: v1
  kind: Namespace
  metadata: {name: shop}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: greeting, namespace: shop}
  data: {text: Welcome!}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers:
        - name: web
          image: registry.k8s.io/pause:3.10
`

// works is what runs beside an agent to apply Works: for as long as the cluster is a member, and with the agent's own access to
// the hub.
func works(config *rest.Config) agent.Companion {
	return agent.CompanionFunc("works", func(ctx context.Context, hub agent.Hub) error {
		a, err := workagent.New(workagent.Options{Hub: hub.Config, Namespace: hub.Member.Namespace, Member: config})
		if err != nil {
			return err
		}
		return a.Start(ctx)
	})
}

// cleaner takes back what Works have left when the hub has forgotten the member.
func cleaner(config *rest.Config) (membership.LeaveGate, error) {
	c, err := workagent.NewCleaner(workagent.Options{Member: config})
	if err != nil {
		return nil, err
	}
	return leave.Cleaner(c.Clean), nil
}

// applyWork gives each member the shop.
func (f *fleet) applyWork(ctx context.Context) error {
	for _, m := range f.members {
		work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: membership.NamespaceFor(membership.DefaultNamespacePrefix, m.name), Name: "shop"}}
		if err := yaml.Unmarshal([]byte(shop), &work.Spec); err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
		if err := f.client.Create(ctx, work); err != nil {
			return fmt.Errorf("create Work shop of %s: %w", m.name, err)
		}
	}
	for _, m := range f.members {
		if err := f.untilAvailable(ctx, m); err != nil {
			return err
		}
	}
	return f.show(ctx)
}

// healWork deletes the Deployment on the first member behind the hub's back.
func (f *fleet) healWork(ctx context.Context) error {
	m := f.members[0]
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	if err := m.client.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
		return fmt.Errorf("read Deployment web on %s: %w", m.name, err)
	}
	before := web.UID
	deleted := time.Now()
	if err := m.client.Delete(ctx, web); err != nil {
		return fmt.Errorf("delete Deployment web on %s: %w", m.name, err)
	}
	// Looked at more often than the other steps, since it is quick.
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for err := error(nil); err != nil || web.UID == before; err = m.client.Get(ctx, client.ObjectKeyFromObject(web), web) {
		if ctx.Err() != nil {
			return fmt.Errorf("waited %s for Deployment web to be back on %s", patience, m.name)
		}
	}
	say("      Deployment web was deleted on %s behind the hub's back, and was there again %s later", m.name, time.Since(deleted).Round(time.Millisecond))
	return f.untilAvailable(ctx, m)
}

func (f *fleet) untilAvailable(ctx context.Context, m *member) error {
	return until(ctx, patience, "Work shop to be available on "+m.name, func(ctx context.Context) (bool, string) {
		work := &v1alpha1.Work{}
		err := f.client.Get(ctx, client.ObjectKey{Namespace: membership.NamespaceFor(membership.DefaultNamespacePrefix, m.name), Name: "shop"}, work)
		if err != nil {
			return false, err.Error()
		}
		return meta.IsStatusConditionTrue(work.Status.Conditions, v1alpha1.ConditionAvailable), work.Status.Message
	})
}

// worksOf is how the Works of a member are doing, as in "shop 3/3".
func (f *fleet) worksOf(ctx context.Context, namespace string) string {
	var list v1alpha1.WorkList
	if namespace == "" || f.client.List(ctx, &list, client.InNamespace(namespace)) != nil || len(list.Items) == 0 {
		return "-"
	}
	var parts []string
	for _, work := range list.Items {
		parts = append(parts, work.Name+" "+orDash(work.Status.Ready))
	}
	return strings.Join(parts, ", ")
}

// noShop reports whether a member has nothing of the shop any more.
func noShop(ctx context.Context, m *member) (bool, string) {
	if ok, why := nothing(ctx, m.client, &v1alpha1.AppliedWorkList{}, client.MatchingLabels{}); !ok {
		return false, why
	}
	err := m.client.Get(ctx, client.ObjectKey{Name: "shop"}, &corev1.Namespace{})
	return apierrors.IsNotFound(err), fmt.Sprintf("namespace shop is left on %s: %v", m.name, err)
}
