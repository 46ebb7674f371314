package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMinimalHub: what the example goes through on local planes it goes through on clusters with nodes of their own.
func TestMinimalHub(t *testing.T) {
	files := clusters(t, "hub", "east", "west")
	program := filepath.Join(t.TempDir(), "minimal-hub")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/minimal-hub")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	run := exec.CommandContext(t.Context(), program, "--once", "--hub", files[0], "--member", "east="+files[1], "--member", "west="+files[2])
	var said strings.Builder
	run.Stdout, run.Stderr = &said, &said
	require.NoError(t, run.Run(), "it says:\n%s", &said)
	t.Log(said.String())
}
