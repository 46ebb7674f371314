// Package resourcefit is the plugin that looks at the resources a policy asks for: clusters that have less available
// are left out, and the others are scored by how much of what they can allocate would be in use afterwards.
//
// The resources that a placement uses on its own clusters do not count against them: such a cluster is never left
// out, and is scored as if the others had taken the placement as well.
//
// The arguments say whether to prefer clusters that have much left, which spreads, or little, which packs:
//
//	{"strategy": "LeastAllocated", "resources": [{"name": "cpu", "weight": 2}, {"name": "memory"}]}
//
// LeastAllocated is the default; it and MostAllocated mean what they mean in kube-scheduler. Without resources those
// that the policy asks for count, all the same. A cluster that cannot allocate a resource at all is as if all of it
// were in use.
package resourcefit
