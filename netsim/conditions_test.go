package netsim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidateNamesTheFieldAndTheValue(t *testing.T) {
	for _, c := range []struct {
		c    Conditions
		says []string
	}{
		{Conditions{Latency: -time.Second}, []string{"Latency", "-1s"}},
		{Conditions{Jitter: -1}, []string{"Jitter", "-1ns"}},
		{Conditions{Loss: 1.5}, []string{"Conditions.Loss", "1.5"}},
		{Conditions{Loss: math.NaN()}, []string{"Loss", "NaN"}},
		{Conditions{LossCorrelation: -0.1}, []string{"LossCorrelation", "-0.1"}},
		{Conditions{DelayCorrelation: 2}, []string{"DelayCorrelation", "2"}},
		{Conditions{Duplicate: 25}, []string{"Duplicate", "25"}},
		{Conditions{DuplicateCorrelation: math.Inf(1)}, []string{"DuplicateCorrelation", "Inf"}},
		{Conditions{Corrupt: -1}, []string{"Corrupt", "-1"}},
		{Conditions{CorruptCorrelation: 7}, []string{"CorruptCorrelation", "7"}},
		{Conditions{Latency: 1, Reorder: 3}, []string{"Reorder", "3"}},
		{Conditions{Latency: 1, ReorderCorrelation: 3}, []string{"ReorderCorrelation", "3"}},
		{Conditions{Latency: 1, ReorderGap: -5}, []string{"ReorderGap", "-5"}},
		{Conditions{Reorder: 0.5}, []string{"Latency", "overtake"}},
		{Conditions{ReorderGap: 5}, []string{"Latency", "overtake"}},
		{Conditions{Rate: -8}, []string{"Rate", "-8"}},
		{Conditions{Queue: -8}, []string{"Queue", "-8"}},
		{Conditions{Queue: 8}, []string{"Rate", "Queue"}},
		{Conditions{MTU: -8}, []string{"MTU", "-8"}},
		{Conditions{MTU: 67}, []string{"MTU is 67", "68"}},
		{Conditions{Distribution: 77}, []string{"Distribution", "77"}},
		{Conditions{Loss: 0.1, Burst: GilbertElliott{P: 0.1}}, []string{"Loss", "0.1", "Burst"}},
		{Conditions{Burst: GilbertElliott{P: 1.1}}, []string{"GilbertElliott.P", "1.1"}},
		{Conditions{Burst: GilbertElliott{OneMinusK: -1}}, []string{"OneMinusK", "-1"}},
		{Conditions{Burst: FourState{P13: 0.7, P14: 0.7}}, []string{"P13+P14", "1.4"}},
		{Conditions{Burst: FourState{P32: 2}}, []string{"P32", "2"}},
		{Conditions{Slots: &Slots{}}, []string{"Slots", "apart"}},
		{Conditions{Slots: &Slots{MinDelay: -1}}, []string{"MinDelay", "-1"}},
		{Conditions{Slots: &Slots{MinDelay: 9, MaxDelay: 5}}, []string{"MaxDelay", "5ns"}},
		{Conditions{Slots: &Slots{MinDelay: 9, Packets: -2}}, []string{"Packets", "-2"}},
		{Conditions{Slots: &Slots{MinDelay: 9, Bytes: -2}}, []string{"Bytes", "-2"}},
		{Cycle(), []string{"Schedule", "no phases"}},
		{Cycle(Phase{}), []string{"Phases[0].For", "0s"}},
		{Cycle(Phase{For: 1, Conditions: Conditions{Loss: 4}}), []string{"Phases[0]", "Loss", "4"}},
		{Cycle(Phase{For: 1, Conditions: Cycle()}), []string{"Phases[0]", "Schedule itself"}},
		{Conditions{Loss: 0.5, Schedule: Metro.Schedule}, []string{"Schedule", "loss 50%"}},
	} {
		err := c.c.Validate()
		require.Error(t, err, "%+v", c.c)
		for _, say := range c.says {
			assert.ErrorContains(t, err, say)
		}
		assert.ErrorContains(t, err, "netsim: ")
	}
}

func TestPresetsAreValidAndNameTheirSource(t *testing.T) {
	require.Len(t, Presets(), 10)
	for _, p := range Presets() {
		assert.NoError(t, p.Down.Validate(), p.Name)
		assert.NoError(t, p.Up.Validate(), p.Name)
		assert.NotEmpty(t, p.Source, p.Name)
	}
	assert.Equal(t, Conditions{}, Perfect)
	assert.True(t, Perfect.plain())
	assert.False(t, Metro.plain())
}

func TestNetemIsACommandLineOfTC(t *testing.T) {
	for _, c := range []struct {
		c             Conditions
		netem, string string
	}{
		{Conditions{}, "netem", "perfect"},
		{Conditions{Latency: 100 * ms, Jitter: 10 * ms, DelayCorrelation: 0.25, Distribution: Normal, Loss: 0.003, LossCorrelation: 0.5},
			"netem delay 100ms 10ms 25% distribution normal loss 0.3% 50%", "delay 100ms 10ms 25% distribution normal loss 0.3% 50%"},
		{Conditions{Latency: 90 * time.Second, Reorder: 0.07, ReorderCorrelation: 0.5, ReorderGap: 5, Duplicate: 0.01, Corrupt: 0.001},
			"netem delay 90000ms duplicate 1% corrupt 0.1% reorder 7% 50% gap 5", "delay 90000ms duplicate 1% corrupt 0.1% reorder 7% 50% gap 5"},
		{Conditions{Latency: ms, ReorderGap: 5}, "netem delay 1ms reorder 100% gap 5", "delay 1ms reorder 100% gap 5"},
		{Conditions{Rate: 256 * kbit, Queue: 3001, MTU: 1000}, "netem limit 4 rate 256kbit", "rate 256kbit queue 3001b mtu 1000"},
		{Conditions{Burst: GilbertElliott{P: 0.01, R: 0.25}}, "netem loss gemodel 1% 25% 100% 0%", "loss gemodel 1% 25% 100% 0%"},
		{Conditions{Burst: FourState{P13: 0.01}}, "netem loss state 1% 99% 0% 100% 0%", "loss state 1% 99% 0% 100% 0%"},
		{Conditions{Slots: &Slots{MinDelay: 800 * us, Packets: 4, Bytes: 9000}}, "netem slot 0.8ms 0.8ms packets 4 bytes 9000",
			"slot 0.8ms 0.8ms packets 4 bytes 9000"},
		{Cycle(Phase{time.Second, Conditions{Loss: 1}}, Phase{time.Minute, Conditions{}}),
			"netem loss 100% # for 1s\nnetem # for 1m0s", "cycle { 1s: loss 100%; 1m0s: perfect }"},
	} {
		require.NoError(t, c.c.Validate())
		assert.Equal(t, c.netem, c.c.Netem())
		assert.Equal(t, c.string, c.c.String())
	}
}

func TestScheduleGoesRound(t *testing.T) {
	s := Cycle(Phase{2 * time.Second, Conditions{Loss: 1}}, Phase{3 * time.Second, Conditions{Latency: ms}}).Schedule
	for now, loss := range map[time.Duration]float64{
		0: 1, 2*time.Second - 1: 1, 2 * time.Second: 0, 5*time.Second - 1: 0, 5 * time.Second: 1, 502 * time.Second: 0,
	} {
		assert.Equal(t, loss, s.at(now).Loss, "at %v", now)
	}
}
