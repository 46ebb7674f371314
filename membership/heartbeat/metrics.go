package heartbeat

import "github.com/prometheus/client_golang/prometheus"

// The descriptors are no registered metrics: each Watcher is a separate collector, so that one process can have
// several.
var (
	membersDesc = prometheus.NewDesc("muster_heartbeat_members", "Tracked members by state.", []string{"state"}, nil)
	lateDesc    = prometheus.NewDesc("muster_heartbeat_late_members", "Tracked members that have missed a heartbeat.",
		nil, nil)
	beatsDesc = prometheus.NewDesc("muster_heartbeats_total", "Heartbeats of tracked members that were observed.", nil,
		nil)
	withheldDesc = prometheus.NewDesc("muster_heartbeat_withheld_members",
		"Tracked members whose taints and failover are withheld.", nil, nil)
	outageDesc = prometheus.NewDesc("muster_heartbeat_outage",
		"Whether there is an outage, during which taints and failover are withheld.", nil, nil)
	watchDesc = prometheus.NewDesc("muster_heartbeat_watch_up", "Whether the watch of the heartbeats is established.",
		nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Watcher) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{membersDesc, lateDesc, beatsDesc, withheldDesc, outageDesc, watchDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (w *Watcher) Collect(ch chan<- prometheus.Metric) {
	w.mu.Lock()
	stats, withheld, up := w.monitor.Stats(), w.monitor.withheld(), !w.monitor.paused
	_, outage := w.monitor.Outage()
	w.mu.Unlock()

	gauge := func(desc *prometheus.Desc, value int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	gauge(membersDesc, stats.Awaited, Awaited.String())
	gauge(membersDesc, stats.Healthy, Healthy.String())
	gauge(membersDesc, stats.Lost, Lost.String())
	gauge(membersDesc, stats.Unsteady, Unsteady.String())
	gauge(lateDesc, stats.Late)
	gauge(withheldDesc, withheld)
	gauge(outageDesc, oneIf(outage))
	gauge(watchDesc, oneIf(up))
	ch <- prometheus.MustNewConstMetric(beatsDesc, prometheus.CounterValue, float64(stats.Beats))
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
