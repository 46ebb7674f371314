// Package e2e runs the examples on clusters of kind, whose nodes, networks and versions differ from those of
// mustertest/localplane, and where pods run. Run the tests in this folder:
//
//	go test -v ./...
//
// Without a container engine, the tests are skipped with the reason. With MUSTER_E2E=required they fail instead. To use
// existing clusters, whose content is at risk:
//
//	MUSTER_E2E_KUBECONFIGS=hub.yaml:east.yaml:west.yaml go test -v ./...
//
// Otherwise the tests start a hub and two members with docker, podman or nerdctl, the first one that responds, and
// delete them when the tests have ended. The environment variable MUSTER_E2E_IMAGE contains the node image. Default:
// the image of kind. Three nodes need about 3 GB of memory.
package e2e
