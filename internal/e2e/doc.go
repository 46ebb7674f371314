// Package e2e runs the examples on clusters of kind: other nodes, networks and versions than those of
// mustertest/localplane, and pods that run.
//
//	go test -v ./...                    # in this folder; skipped, with the reason, where no container engine answers
//	MUSTER_E2E=required go test -v ./...  # fails instead
//	MUSTER_E2E_KUBECONFIGS=hub.yaml:east.yaml:west.yaml go test -v ./...  # on clusters that are there: whatever is in them is at risk
//
// It starts a hub and two members by docker, podman or nerdctl, whichever answers first, and deletes them when the
// tests are over. The environment variable MUSTER_E2E_IMAGE is the node image, kind's own unless it is set. Three nodes
// need about 3 GB of memory.
package e2e
