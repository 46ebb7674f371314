package main

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// worksOf returns the readiness of the Works of a member, such as "apps.shop-0 3/3".
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
