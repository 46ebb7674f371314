package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// documentTimeout bounds the commands of one document.
const documentTimeout = 15 * time.Minute

// TestDocuments_Tutorial runs the commands of docs/tutorial.md in an empty folder. The go command receives muster from
// a module proxy, as on the machine of a user. With -trimpath, packages of other modules are
// not compiled again.
func TestDocuments_Tutorial(t *testing.T) {
	_, proxy := serveModule(t)
	s := newShell(t)
	s.env = append(s.env, "GOFLAGS=-trimpath", "GOWORK=off", "GOSUMDB=off", "GOPRIVATE=", "GONOPROXY=none",
		"GOPROXY="+proxy+","+goEnv(t, "GOPROXY"))
	s.run("tutorial.md")
}

// TestDocuments_HowTo runs the commands of each how-to guide with the fleet that docs/howto/README.md sets up.
func TestDocuments_HowTo(t *testing.T) {
	s := newShell(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(root, filepath.Join(s.folder, "muster")))
	s.run(filepath.Join("howto", "README.md"))
	guides, err := filepath.Glob(filepath.Join(root, "docs", "howto", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(guides), 8)
	for _, guide := range guides {
		name := filepath.Base(guide)
		if name == "README.md" {
			continue
		}
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			began := time.Now()
			// Programs that a guide starts run until the end of all guides.
			guide := &shell{t: t, programs: s.t, folder: s.folder, env: s.env}
			guide.run(filepath.Join("howto", name))
			t.Logf("docs/howto/%s: %s", name, time.Since(began).Round(time.Second))
		})
	}
}

// shell runs the commands of documents in one folder. Programs that commands start in the background run until the test
// ends, and variables that commands export are kept.
type shell struct {
	t        *testing.T
	programs *testing.T // whose end ends the programs in the background
	folder   string
	env      []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	// Go's cache of modules is read-only, so it must not be below a folder that the test removes.
	s := &shell{t: t, programs: t, folder: t.TempDir(), env: os.Environ()}
	s.env = append(s.env, "PATH="+kubectl(t)+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+os.Getenv("HOME"),
		"KUBECONFIG="+filepath.Join(s.folder, "no-kubeconfig"))
	return s
}

// kubectl returns a folder with kubectl, which is built if the machine has none.
func kubectl(t *testing.T) string {
	t.Helper()
	if found, err := exec.LookPath("kubectl"); err == nil {
		return filepath.Dir(found)
	}
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", folder, "k8s.io/kubernetes/cmd/kubectl")
	build.Dir = filepath.Join("..", "controlplane")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return folder
}

// commandsOf returns the blocks of a document with the language sh.
func commandsOf(document string) (script string) {
	inside := false
	for line := range strings.Lines(document) {
		switch {
		case !inside && strings.TrimSpace(line) == "```sh":
			inside = true
		case inside && strings.TrimSpace(line) == "```":
			inside = false
		case inside:
			script += line
		}
	}
	return script
}

func TestCommandsOf(t *testing.T) {
	require.Equal(t, "a\nb <<E\nc\nE\n", commandsOf("text\n```sh\na\n```\n```yaml\nno\n```\n```sh\nb <<E\nc\nE\n```\n"))
}

// run runs the commands of a document in docs. The first command that fails ends it.
func (s *shell) run(document string) {
	t := s.t
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
	require.NoError(t, err)
	script := commandsOf(string(content))
	require.NotEmpty(t, script, "%s contains no commands", document)
	variables, log := filepath.Join(t.TempDir(), "env"), filepath.Join(t.TempDir(), "log")
	file, err := os.Create(log) // A pipe would be open for as long as the programs in the background run.
	require.NoError(t, err)
	defer file.Close()

	ctx, cancel := context.WithTimeout(t.Context(), documentTimeout)
	defer cancel()
	script = "PS4='+ ${SECONDS}s '\n" + script // bash does not accept the variable from the environment of root.
	script += "\n{ set +x; env -0 > '" + variables + "'; } 2> /dev/null"
	bash := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script)
	bash.Dir, bash.Env, bash.Stdout, bash.Stderr = s.folder, s.env, file, file
	bash.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, bash.Start())
	group := -bash.Process.Pid
	s.programs.Cleanup(func() { endGroup(s.programs, group) })
	bash.Cancel = func() error { return syscall.Kill(group, syscall.SIGKILL) }
	err = bash.Wait()
	output, _ := os.ReadFile(log)
	require.NoError(t, err, "docs/%s:\n%s%s", document, output, s.logs())
	t.Logf("docs/%s:\n%s", document, output)
	exported, err := os.ReadFile(variables)
	require.NoError(t, err)
	s.env = strings.Split(strings.TrimSuffix(string(exported), "\x00"), "\x00")
}

// logs returns the ends of the log files that programs in the background have written.
func (s *shell) logs() string {
	var out bytes.Buffer
	for _, pattern := range []string{"*.log", filepath.Join("*", "*.log")} {
		files, _ := filepath.Glob(filepath.Join(s.folder, pattern))
		for _, name := range files {
			data, _ := os.ReadFile(name)
			out.WriteString("\n== " + name + "\n")
			out.Write(data[max(0, len(data)-4000):])
		}
	}
	return out.String()
}

// endGroup ends the programs that still run.
func endGroup(t *testing.T, group int) {
	t.Helper()
	if syscall.Kill(group, syscall.SIGTERM) != nil {
		return // None is left.
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if syscall.Kill(group, 0) != nil {
				return
			}
		case <-deadline:
			t.Errorf("programs in the background did not end within a minute")
			_ = syscall.Kill(group, syscall.SIGKILL)
			return
		}
	}
}
