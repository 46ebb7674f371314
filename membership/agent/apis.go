package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The limits of status.apis of a Membership; see its type.
const (
	maxGroupVersions = 512
	maxKinds         = 512
	maxKind          = 63 // characters, which is also the limit of a CustomResourceDefinition
)

// servedAPIs is the last result about the kinds that the member serves.
type servedAPIs struct {
	reported bool // whether ReportAPIs is set
	known    bool
	all      []v1alpha1.ServedAPIs
}

// over returns the APIs to report, given the previously reported ones.
func (s servedAPIs) over(before []v1alpha1.ServedAPIs) []v1alpha1.ServedAPIs {
	switch {
	case !s.reported:
		return nil
	case !s.known:
		return before
	default:
		return s.all
	}
}

// apis reads the APIs that the member serves.
func (m *member) apis(ctx context.Context) (finding, error) {
	_, lists, err := m.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return finding{}, fmt.Errorf("read which APIs the member serves: %w", err)
	}
	found, err := kindsOf(lists, m.served, failed)
	if err != nil {
		return finding{}, err
	}
	m.served = found
	return finding{apis: found}, nil
}

// kindsOf summarizes which kinds a member serves. The kinds of an extension API server that does not respond stay
// unchanged: a short outage of an extension is no reason to move workloads.
func kindsOf(lists []*metav1.APIResourceList, before []v1alpha1.ServedAPIs,
	failed map[schema.GroupVersion]error) ([]v1alpha1.ServedAPIs, error) {
	kinds := map[string][]string{}
	for _, list := range lists {
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if !strings.Contains(resource.Name, "/") && resource.Kind != "" && len(resource.Kind) <= maxKind {
				kinds[list.GroupVersion] = append(kinds[list.GroupVersion], resource.Kind)
			}
		}
	}
	for _, api := range before {
		groupVersion, err := schema.ParseGroupVersion(api.GroupVersion)
		if _, away := failed[groupVersion]; err == nil && away {
			kinds[api.GroupVersion] = api.Kinds
		}
	}
	if len(kinds) > maxGroupVersions {
		return nil, fmt.Errorf("the member serves %d versions of API groups, and the limit of a Membership is %d", len(kinds),
			maxGroupVersions)
	}
	all := make([]v1alpha1.ServedAPIs, 0, len(kinds))
	for groupVersion, names := range kinds {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
		if len(names) > maxKinds {
			return nil, fmt.Errorf("the member serves %d kinds of %s, and the limit of a Membership is %d", len(names),
				groupVersion, maxKinds)
		}
		all = append(all, v1alpha1.ServedAPIs{GroupVersion: groupVersion, Kinds: names})
	}
	if len(all) == 0 {
		return nil, errors.New("the member reports that it serves no APIs")
	}
	slices.SortFunc(all, func(a, b v1alpha1.ServedAPIs) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	return all, nil
}
