package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// recorder is a TracerProvider that keeps all spans.
type recorder struct {
	embedded.TracerProvider

	mu    sync.Mutex
	spans []*span
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return tracerOf{r: r} }

type tracerOf struct {
	embedded.Tracer
	r *recorder
}

func (t tracerOf) Start(ctx context.Context, name string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &span{name: name, parent: trace.SpanFromContext(ctx)}
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.r.spans = append(t.r.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

func (r *recorder) take() []*span {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := r.spans
	r.spans = nil
	return spans
}

// span records its attributes and its status.
type span struct {
	noop.Span

	name       string
	parent     trace.Span
	attributes []attribute.KeyValue
	code       codes.Code
	message    string
	ended      bool
}

func (s *span) IsRecording() bool                         { return true }
func (s *span) SetAttributes(kv ...attribute.KeyValue)    { s.attributes = append(s.attributes, kv...) }
func (s *span) SetStatus(code codes.Code, message string) { s.code, s.message = code, message }
func (s *span) End(...trace.SpanEndOption)                { s.ended = true }

// TestReconciler_Spans checks the span of a request, with the spans of the reconciler in it. Without a TracerProvider,
// the context has no recording span.
func TestReconciler_Spans(t *testing.T) {
	const secret = "s3cret"
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	errs := map[string]error{ // by the message of the status
		"":                 nil,
		"Conflict":         apierrors.NewConflict(schema.GroupResource{Resource: "works"}, "web", errors.New(secret)),
		"DeadlineExceeded": fmt.Errorf("%s: %w", secret, context.DeadlineExceeded),
		"Canceled":         fmt.Errorf("%s: %w", secret, context.Canceled),
		"Error":            errors.New(secret),
	}
	var recording bool
	var result error
	r := Reconciler("muster-test", reconcile.Func(func(ctx context.Context, got reconcile.Request) (reconcile.Result,
		error) {
		require.Equal(t, request, got)
		recording = trace.SpanFromContext(ctx).IsRecording()
		_, end := Start(ctx, "inner", types.NamespacedName{Name: "part"})
		end(nil)
		return reconcile.Result{RequeueAfter: 1}, result
	}))
	_, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.False(t, recording, "no TracerProvider is set")

	provider := &recorder{}
	otel.SetTracerProvider(provider)
	for message, want := range errs {
		result = want
		got, err := r.Reconcile(t.Context(), request)
		require.Equal(t, reconcile.Result{RequeueAfter: 1}, got)
		require.Equal(t, want, err)
		require.True(t, recording)
		spans := provider.take()
		require.Len(t, spans, 2)
		outer, inner := spans[0], spans[1]
		require.Equal(t, "muster-test", outer.name)
		require.Equal(t, []attribute.KeyValue{Namespace.String("shop"), Object.String("web")}, outer.attributes)
		require.Equal(t, message, outer.message)
		require.Equal(t, want != nil, outer.code == codes.Error)
		require.True(t, outer.ended)
		require.True(t, inner.ended)
		require.Same(t, outer, inner.parent)
		require.Equal(t, []attribute.KeyValue{Object.String("part")}, inner.attributes)
		require.NotContains(t, fmt.Sprint(outer.attributes, outer.message), secret)
	}
}

var (
	reconciles = regexp.MustCompile(`(?m)^func \([^)]+\) Reconcile\(\w+ context\.Context`)
	queues     = regexp.MustCompile(`workqueue\.New\w*RateLimitingQueue|queue\.Pop\(`)
)

// TestControllersHaveSpans checks that each package with a controller or with a separate queue uses this package.
func TestControllersHaveSpans(t *testing.T) {
	controllers, traced := map[string]bool{}, map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		if entry.IsDir() && (slashed == "examples" || slashed == "mustertest" || slashed == "internal" ||
			strings.HasSuffix(slashed, "testdata")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		folder := filepath.Dir(slashed)
		controllers[folder] = controllers[folder] || reconciles.Match(content) || queues.Match(content)
		traced[folder] = traced[folder] || strings.Contains(string(content), "tracing.Reconciler(") ||
			strings.Contains(string(content), "tracing.Start(")
		return err
	}))
	count := 0
	for folder, has := range controllers {
		if has {
			count++
			require.True(t, traced[folder], "%s has a controller without spans: use tracing.Reconciler or tracing.Start", folder)
		}
	}
	require.Greater(t, count, 8)
}

// BenchmarkStart_Off measures the cost of a span without a TracerProvider.
func BenchmarkStart_Off(b *testing.B) {
	b.ReportAllocs()
	ctx, object := b.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}
	for b.Loop() {
		_, end := Start(ctx, "muster-test", object)
		end(nil)
	}
}
