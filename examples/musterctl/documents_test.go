package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocuments_CommandsParse checks that each command in the documentation exists and has the flags and the number of
// arguments that the documentation uses.
func TestDocuments_CommandsParse(t *testing.T) {
	documents := []string{filepath.Join("..", "..", "README.md")}
	for _, pattern := range []string{"*.md", filepath.Join("*", "*.md")} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", pattern))
		require.NoError(t, err)
		documents = append(documents, found...)
	}
	commands := 0
	for _, document := range documents {
		content, err := os.ReadFile(document)
		require.NoError(t, err)
		for line := range strings.SplitSeq(strings.ReplaceAll(string(content), "\\\n", " "), "\n") {
			for _, call := range commandsIn(line) {
				commands++
				requireParses(t, filepath.Base(document)+": "+strings.Join(call, " "), call)
			}
		}
	}
	require.GreaterOrEqual(t, commands, 30)
}

// commandsIn returns the arguments of the musterctl commands in a line of a document. Commands are in code blocks or
// between backquotes.
func commandsIn(line string) (calls [][]string) {
	texts := strings.Split(line, "`")
	for i, text := range texts {
		if inText := len(texts) > 1; inText && i%2 == 0 {
			continue
		}
		text, _, _ = strings.Cut(text, " #")
		text, _, _ = strings.Cut(text, " | ")
		text, _, _ = strings.Cut(text, " > ")
		for _, program := range []string{"musterctl ", "kubectl muster "} {
			if arguments, found := strings.CutPrefix(strings.TrimSpace(text), program); found {
				calls = append(calls, strings.Fields(arguments))
			}
		}
	}
	return calls
}

func requireParses(t *testing.T, name string, call []string) {
	t.Helper()
	a := &app{program: "musterctl"}
	command, rest, err := a.root().Find(call)
	require.NoError(t, err, name)
	require.True(t, command.Runnable() && (!command.HasSubCommands() || command.Name() == "clean"),
		"%s: a command is missing", name)
	require.NoError(t, command.ParseFlags(rest), name)
	require.NoError(t, command.ValidateArgs(command.Flags().Args()), name)
}
