package muster

// What is generated, and from what. `go generate ./...` makes all of it; CI makes it again and wants no
// difference. An API package takes one line, for its deep copies and its CRDs; a package of controllers
// takes one, for the role that its +kubebuilder:rbac markers ask for.

//go:generate -command controller-gen go tool -modfile=internal/tools/go.mod controller-gen

//go:generate controller-gen object crd paths=./membership/v1alpha1 output:crd:dir=membership/crds
//go:generate controller-gen object crd paths=./placement/v1alpha1 output:crd:dir=placement/crds
//go:generate controller-gen object crd paths=./work/v1alpha1 output:crd:dir=work/crds
//go:generate controller-gen rbac:roleName=muster-placement paths=./placement output:rbac:dir=placement/rbac
//go:generate go run ./internal/crdinstall/boundquantities membership/crds
//go:generate controller-gen rbac:roleName=muster-hub paths=./membership/hub paths=./membership/registration/... output:rbac:dir=membership/hub/rbac
//go:generate controller-gen rbac:roleName=muster-agent-member paths=./membership/agent output:rbac:dir=membership/agent/rbac
//go:generate controller-gen rbac:roleName=muster-work-agent-member paths=./work/agent output:rbac:dir=work/agent/rbac
//go:generate controller-gen rbac:roleName=muster-hub-work paths=./work/leave output:rbac:dir=work/leave/rbac
