package lifecycle

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "put the diagrams into doc.go and docs/lifecycle.md")

// TestDiagramsAreInTheDocumentation checks that the documentation contains the current diagrams.
func TestDiagramsAreInTheDocumentation(t *testing.T) {
	indented := func(diagram string) string {
		return "//\t" + strings.ReplaceAll(strings.TrimSpace(diagram), "\n", "\n//\t")
	}
	for _, doc := range []struct{ file, hub, agent, after, end, hubDiagram, agentDiagram string }{
		{
			file: "doc.go", hub: "// [HubDiagram] prints it:\n//\n", agent: "// [AgentDiagram] prints it:\n//\n", after: "//\t",
			hubDiagram: indented(HubDiagram()), agentDiagram: indented(AgentDiagram()),
		},
		{
			file: "../../docs/lifecycle.md", hub: "`status.phase`:\n\n```mermaid\n", agent: "`OnPhase`:\n\n```mermaid\n",
			hubDiagram: strings.TrimSpace(HubDiagram()), agentDiagram: strings.TrimSpace(AgentDiagram()),
		},
	} {
		t.Run(doc.file, func(t *testing.T) {
			data, err := os.ReadFile(doc.file)
			require.NoError(t, err)
			got := string(data)
			want := put(t, put(t, got, doc.hub, doc.hubDiagram, doc.after), doc.agent, doc.agentDiagram, doc.after)
			if *update {
				require.NoError(t, os.WriteFile(doc.file, []byte(want), 0o644))
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("run go test ./membership/lifecycle -update (-want +got):\n%s", diff)
			}
		})
	}
}

// put replaces the lines after a marker that begin with the given text or, if that is empty, all lines up to the end
// of the code block.
func put(t *testing.T, text, marker, diagram, begin string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, marker)
	require.True(t, found, "marker %q", marker)
	lines := strings.SplitAfter(rest, "\n")
	n := 0
	for n < len(lines) && (begin != "" && strings.HasPrefix(lines[n], begin) ||
		begin == "" && !strings.HasPrefix(lines[n], "```")) {
		n++
	}
	return before + marker + diagram + "\n" + strings.Join(lines[n:], "")
}
