package muster

// What is generated, and from what. `go generate ./...` makes all of it; CI makes it again and wants no
// difference. An API package takes one line, for its deep copies and its CRDs; a package of controllers
// takes one, for the role that its +kubebuilder:rbac markers ask for.

//go:generate -command controller-gen go tool -modfile=internal/tools/go.mod controller-gen

//go:generate controller-gen object crd paths=./membership/v1alpha1 output:crd:dir=membership/crds
//go:generate controller-gen object crd paths=./placement/v1alpha1 output:crd:dir=placement/crds
//go:generate controller-gen object crd paths=./work/v1alpha1 output:crd:dir=work/crds
//go:generate controller-gen object crd paths=./addon/v1alpha1 output:crd:dir=addon/crds
//go:generate controller-gen object crd paths=./tenancy/v1alpha1 output:crd:dir=tenancy/crds
//go:generate controller-gen rbac:roleName=muster-placement paths=./placement output:rbac:dir=placement/rbac
//go:generate controller-gen rbac:roleName=muster-workset paths=./placement/workset paths=./placement/internal/revision output:rbac:dir=placement/workset/rbac
//go:generate controller-gen rbac:roleName=muster-clusterprofile paths=./placement/clusterprofile output:rbac:dir=placement/clusterprofile/rbac
//go:generate controller-gen rbac:roleName=muster-tenancy paths=./tenancy output:rbac:dir=tenancy/rbac
//go:generate go run ./internal/crdinstall/boundquantities membership/crds
//go:generate go run ./internal/crdinstall/boundquantities addon/crds
//go:generate controller-gen rbac:roleName=muster-addon paths=./addon output:rbac:dir=addon/rbac
//go:generate controller-gen rbac:roleName=muster-hub paths=./membership/hub paths=./membership/registration paths=./membership/registration/csr paths=./membership/registration/identity paths=./membership/registration/jointoken paths=./membership/registration/token output:rbac:dir=membership/hub/rbac
//go:generate controller-gen rbac:roleName=muster-hub-bootstrap-tokens,fileName=bootstrap-tokens.yaml paths=./membership/registration/jointoken/internal/bootstrapsecret output:rbac:dir=membership/hub/rbac
//go:generate controller-gen rbac:roleName=muster-hub-fleet paths=./membership/fleet output:rbac:dir=membership/fleet/rbac
//go:generate controller-gen rbac:roleName=muster-agent-member paths=./membership/agent output:rbac:dir=membership/agent/rbac
//go:generate controller-gen rbac:roleName=muster-cluster-api paths=./membership/clusterapi output:rbac:dir=membership/clusterapi/rbac
//go:generate controller-gen rbac:roleName=muster-cluster-api-source paths=./membership/clusterapi/internal/source output:rbac:dir=membership/clusterapi/internal/source/rbac
//go:generate controller-gen rbac:roleName=muster-push paths=./membership/push output:rbac:dir=membership/push/rbac
//go:generate controller-gen rbac:roleName=muster-work-agent-member paths=./work/agent paths=./tenancy/memberpolicy output:rbac:dir=work/agent/rbac
//go:generate controller-gen rbac:roleName=muster-hub-work paths=./work/leave output:rbac:dir=work/leave/rbac
//go:generate controller-gen rbac:roleName=muster-hub-work-unassigned paths=./work/unassigned output:rbac:dir=work/unassigned/rbac
//go:generate controller-gen rbac:roleName=muster-addon-registration paths=./addon/internal/registration paths=./membership/registration/csr output:rbac:dir=addon/internal/registration/rbac
//go:generate controller-gen rbac:roleName=muster-hub-addons paths=./addon/leave output:rbac:dir=addon/leave/rbac
//go:generate controller-gen rbac:roleName=muster-install paths=./membership/install output:rbac:dir=membership/install/rbac
//go:generate go run ./internal/deploymanifests deploy
//go:generate go run ./mustertest/localplane/internal/embedsource internal/controlplane mustertest/localplane/controlplane
