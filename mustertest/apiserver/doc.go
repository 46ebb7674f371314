// Package apiserver is a Kubernetes API server in memory, for tests.
package apiserver
