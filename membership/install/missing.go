package install

import (
	"context"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/internal/ssa"
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
		there, err := ssa.Read(ctx, s.client, each.kind(), each.objectKey())
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
