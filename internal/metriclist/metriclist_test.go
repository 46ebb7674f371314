// Package metriclist keeps docs/metrics.md and deploy/monitoring in step with the metrics in the code. It is a test and
// nothing else.
package metriclist

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

const (
	root     = "../.."
	document = root + "/docs/metrics.md"
)

var metricName = regexp.MustCompile(`\bmuster_[a-z_]+\b`)

type metric struct{ name, folder, help string }

// TestMetrics_Documented checks that docs/metrics.md lists every metric with its help text.
func TestMetrics_Documented(t *testing.T) {
	var text strings.Builder
	text.WriteString(
		"# Metrics\n\nAll metrics of muster, in the format of Prometheus. This list is generated from the code: run\n" +
			"`go test ./internal/metriclist -update` after a change. `deploy/monitoring` has alerts and a Grafana " +
			"dashboard.\n\n" +
			"| metric | package | meaning |\n|---|---|---|\n")
	found := survey(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		require.NotEmpty(t, m.help, "metric %s has no help text that this test finds", name)
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", m.name, m.folder, m.help)
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(text.String()), 0o600))
	}
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, text.String(), string(content), "run go test ./internal/metriclist -update")
}

// TestMonitoring_MetricsExist checks that alerts and dashboard use metrics that exist.
func TestMonitoring_MetricsExist(t *testing.T) {
	known := survey(t)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		content, err := os.ReadFile(filepath.Join(root, "deploy", "monitoring", file))
		require.NoError(t, err)
		used := metricName.FindAllString(string(content), -1)
		require.NotEmpty(t, used, file)
		for _, name := range used {
			base := name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				base = strings.TrimSuffix(base, suffix)
			}
			if _, exists := known[base]; !exists {
				t.Errorf("%s: metric %s does not exist", file, name)
			}
		}
	}
}

// survey returns the metrics in the code by name. The help text of a metric is the string that follows its name.
func survey(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != root):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pending := ""
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := constant(n)
			switch {
			case !ok:
				return true
			case metricName.FindString(text) == text && text != "":
				pending = text
			case pending != "":
				found[pending] = metric{pending, folder, text}
				pending = ""
			}
			return false
		})
		return nil
	}))
	require.Greater(t, len(found), 20, "the survey has missed metrics")
	return found
}

// constant returns the text of a string literal, or of a sum of string literals.
func constant(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(n.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := constant(n.X)
		right, also := constant(n.Y)
		return left + right, ok && also && n.Op == token.ADD
	}
	return "", false
}
