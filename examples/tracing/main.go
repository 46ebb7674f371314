// Command tracing is a complete hub that exports OpenTelemetry traces to standard output. Each reconciliation of a
// controller of muster has a span, which contains a span for each request to the API server. A product replaces the
// exporter with that of its collector.
//
//	KUBECONFIG=hub.kubeconfig go run .
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-sdk/muster/assembly"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	ctrl.SetLogger(logr.Discard())
	exporter, err := stdouttrace.New()
	if err != nil {
		return err
	}
	end := export(exporter)
	defer func() { err = errors.Join(err, end()) }()
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.Wrap(requests)
	scheme := runtime.NewScheme()
	if err := assembly.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := assembly.SetupHub(ctx, mgr, assembly.HubOptions{}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// export exports the spans of a tenth of the traces to an exporter. The returned function exports the remaining spans
// and stops.
func export(exporter sdktrace.SpanExporter) (end func() error) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(sampled))))
	otel.SetTracerProvider(provider)
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return provider.Shutdown(ctx)
	}
}

// sampled is the fraction of the traces that are exported.
var sampled = 0.1

// requests adds a span to each request of a reconciliation. Requests outside of a reconciliation, such as watches and
// the renewal of Leases, have no span.
func requests(inner http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(inner, otelhttp.WithFilter(func(r *http.Request) bool {
		return trace.SpanContextFromContext(r.Context()).IsValid()
	}))
}
