package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/strvals"
)

var (
	chartOf  = regexp.MustCompile(`helm (install|upgrade|show (values|crds)) .*?deploy/charts/(muster-[a-z]+)`)
	setting  = regexp.MustCompile(`--set(?:-file)? (\S+)`)
	fileOf   = regexp.MustCompile(`--set-file (\w+)=\S+`)
	document = filepath.Join("..", "..", "docs", "install.md")
)

// TestDocuments_CommandsOfHelm checks that the charts accept the values in each command of docs/install.md.
func TestDocuments_CommandsOfHelm(t *testing.T) {
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	commands := 0
	for command := range strings.SplitSeq(strings.ReplaceAll(string(content), "\\\n", ""), "\n") {
		chart := chartOf.FindStringSubmatch(command)
		if chart == nil {
			continue
		}
		commands++
		v := values{}
		command = fileOf.ReplaceAllString(command, "--set $1=-----BEGIN")
		for _, set := range setting.FindAllStringSubmatch(command, -1) {
			set[1] = strings.Replace(set[1], "-----BEGIN", "-----BEGIN CERTIFICATE-----", 1)
			require.NoError(t, strvals.ParseInto(set[1], v), command)
		}
		_, err := template(t, chart[3], v)
		require.NoError(t, err, command)
	}
	require.GreaterOrEqual(t, commands, 7)
}
