package install

import (
	"context"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missing returns the first workload that does not run as last applied, and the reason; empty: all run.
func (s *site) missing(ctx context.Context) (string, error) {
	all, err := s.inventory(ctx)
	if err != nil {
		return "", err
	}
	for _, each := range all {
		if each.groupKind().Group != appsv1.GroupName {
			continue
		}
		there := &unstructured.Unstructured{}
		there.SetAPIVersion(each.APIVersion)
		there.SetKind(each.Kind)
		err := s.client.Get(ctx, client.ObjectKey{Namespace: each.Namespace, Name: each.Name}, there)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("%s does not exist on the member", each), nil
		}
		if err != nil {
			return "", fmt.Errorf("get %s on the member: %w", each, err)
		}
		result, err := status.Compute(there)
		if err != nil {
			return "", fmt.Errorf("compute the rollout status of %s: %w", each, err)
		}
		if result.Status != status.CurrentStatus {
			return fmt.Sprintf("%s on the member is not rolled out: %s", each, result.Message), nil
		}
	}
	return "", nil
}
