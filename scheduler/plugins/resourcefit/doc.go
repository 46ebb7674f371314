// Package resourcefit is a plugin for the resources that a policy requests. It rejects clusters with fewer available
// resources, and scores the others by the fraction of their allocatable resources that would be in use afterwards.
//
// The resources that a placement uses on its own clusters do not count against them. Such a cluster is never rejected,
// and its score is calculated as if the placement also used its resources on all other clusters.
//
// The arguments select whether clusters with more available resources are preferred, which spreads placements, or
// clusters with fewer, which packs them:
//
//	{"strategy": "LeastAllocated", "resources": [{"name": "cpu", "weight": 2}, {"name": "memory"}]}
//
// The default is LeastAllocated. LeastAllocated and MostAllocated have the same meaning as in kube-scheduler. Without
// resources, all resources that the policy requests have the same weight. A cluster without an allocatable quantity of
// a resource is scored as if the resource were completely in use.
package resourcefit
