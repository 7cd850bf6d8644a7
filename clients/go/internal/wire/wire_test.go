package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"testing"
)

const vectorFile = "../../../../tests/vectors/session_frames.json"

type vector struct {
	Name, Op         string
	Flags            uint8
	Channel, Request uint32
	Body             json.RawMessage
	Frame            string
}

func vectors(t testing.TB) (sound, broken []vector, takes uint32) {
	t.Helper()
	data, err := os.ReadFile(vectorFile)
	var all struct {
		ReceiverTakes uint32 `json:"receiver_takes"`
		Sound, Broken []vector
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil || len(all.Sound) < 50 || len(all.Broken) < 50 {
		t.Fatal("no vectors: ", err)
	}
	return all.Sound, all.Broken, all.ReceiverTakes
}

func (v vector) bytes(t testing.TB) []byte {
	t.Helper()
	frame, err := hex.DecodeString(v.Frame)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// decode decodes the body of any frame of the broker.
func decode(f Frame) (any, error) {
	switch f.Op {
	case Welcome:
		return DecodeWelcome(f.Body)
	case ProduceOpened:
		return DecodeProduceOpened(f.Body)
	case Confirm:
		return DecodeConfirm(f.Body)
	case Refuse:
		return DecodeRefuse(f.Body)
	case ConsumeOpened:
		return DecodeConsumeOpened(f)
	case Deliver:
		return DecodeDeliver(f), nil
	case Done:
		return DecodeDone(f.Body), nil
	case Error, Goodbye:
		return DecodeFailure(f.Body)
	case Late:
		return DecodeLate(f.Body)
	case Revoked:
		return DecodeRevoked(f.Body)
	case Heartbeat:
		return nil, nil
	}
	return nil, fmt.Errorf("op %d is not of a broker", f.Op)
}

// fields returns the fields of a decoded body under the names of the vectors.
func fields(value any) map[string]any {
	switch v := value.(type) {
	case Welcomed:
		return map[string]any{"version": 1, "frame_bytes_max": v.FrameBytesMax, "heartbeat_ms": v.HeartbeatMS, "channels_max": v.ChannelsMax,
			"broker": v.Broker, "session": v.Session}
	case ProducerOpened:
		return map[string]any{"producer_id": v.Producer, "producer_epoch": v.Epoch, "level": v.Level, "target": v.Target,
			"batch_bytes_max": v.BatchBytesMax, "message_bytes_max": v.MessageBytesMax, "expected": v.Expected, "next_offset": v.NextOffset,
			"incarnation": v.Incarnation, "secret": hex.EncodeToString(v.Secret)}
	case Confirmed:
		return map[string]any{"received": v.Received, "flushed": v.Flushed, "next_offset": v.NextOffset}
	case Refused:
		return map[string]any{"begin": v.Begin, "end": v.End, "expected": v.Expected, "code": v.Code, "sentence": v.Text}
	case ConsumerOpened:
		return map[string]any{"next": v.Next, "committed": v.Committed, "next_offset": v.NextOffset, "incarnation": v.Incarnation,
			"ack_timeout_ms": v.AckTimeoutMS}
	case Delivered:
		return map[string]any{"delivery": v.Delivery, "hand_out": v.HandOut, "lost": v.Lost, "batch": hex.EncodeToString(v.Batch)}
	case uint64:
		return map[string]any{"value": v}
	case Failure:
		return map[string]any{"code": v.Code, "sentence": v.Text}
	case []Range:
		return map[string]any{"ranges": pairs(v)}
	case Revocation:
		return map[string]any{"cause": v.Cause, "hand_outs_before": v.Before, "ranges": pairs(v.Ranges)}
	}
	return map[string]any{}
}

func pairs(all []Range) (made [][2]uint64) {
	for _, each := range all {
		made = append(made, [2]uint64{each.Begin, each.End})
	}
	return made
}

// asJSON compares numbers of all types.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFramesOfTheBrokerDecodeToTheirFields(t *testing.T) {
	sound, _, takes := vectors(t)
	decoded := map[uint8]bool{}
	for _, v := range sound {
		frame, err := ReadFrame(bytes.NewReader(v.bytes(t)), takes)
		if err != nil {
			continue // of a client, as the count below shows
		}
		if frame.Flags != v.Flags || frame.Channel != v.Channel || frame.Request != v.Request {
			t.Errorf("%s: %+v", v.Name, frame)
		}
		value, err := decode(frame)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		var wanted map[string]json.RawMessage
		if err := json.Unmarshal(v.Body, &wanted); err != nil {
			t.Fatal(err)
		}
		got := fields(value)
		for name, raw := range wanted {
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				t.Fatal(err)
			}
			text := compact.String()
			if name == "code" {
				var code uint16
				json.Unmarshal(raw, &code)
				text = asJSON(t, CodeWord(code))
			}
			if asJSON(t, got[name]) != text {
				t.Errorf("%s: %s is %s, not %s", v.Name, name, asJSON(t, got[name]), text)
			}
		}
		decoded[frame.Op] = true
	}
	if len(decoded) != len(fromBroker) {
		t.Errorf("only these ops were decoded: %v", decoded)
	}
}

// said has all fields of the frames that a client sends.
type said struct {
	FrameBytesMax  uint32 `json:"frame_bytes_max"`
	HeartbeatMS    uint32 `json:"heartbeat_ms"`
	Codecs         uint32
	Name, Ticket   string
	NewestVersion  int    `json:"newest_version"`
	ProducerID     uint64 `json:"producer_id"`
	ProducerEpoch  uint16 `json:"producer_epoch"`
	Level, Target  uint8
	Topic, Group   string
	Secret         string
	Batch          string
	Mode, Start    uint8
	Acknowledge    uint8 `json:"acknowledgement"`
	Holds          uint8
	CreditMessages uint32 `json:"credit_messages"`
	CreditBytes    uint64 `json:"credit_bytes"`
	StartValue     uint64 `json:"start_value"`
	Incarnation    uint64
	AckTimeoutMS   uint32 `json:"ack_timeout_ms"`
	Messages       uint32
	Bytes          uint64
	MS             uint32
	HandOut        uint32 `json:"hand_out"`
	Reason         string
	Ranges         [][2]uint64
	Before         *uint64
	Begin, End     uint64
}

// encode encodes a frame of the client from the fields of a vector; nil: this client never sends such a frame.
func encode(t *testing.T, v vector) []byte {
	var s said
	if err := json.Unmarshal(v.Body, &s); err != nil {
		t.Fatal(err)
	}
	var all []Range
	for _, each := range s.Ranges {
		all = append(all, Range{each[0], each[1]})
	}
	secret, _ := hex.DecodeString(s.Secret)
	switch {
	case v.Op == "hello" && s.NewestVersion == 1:
		return EncodeHello(v.Request, s.FrameBytesMax, s.HeartbeatMS, s.Codecs, s.Name, s.Ticket)
	case v.Op == "produce_open":
		return EncodeProduceOpen(v.Request, s.Topic, s.ProducerID, s.ProducerEpoch, s.Level, s.Target, secret)
	case v.Op == "consume_open":
		return ConsumeOpening{s.Topic, s.Group, s.Mode, s.Acknowledge, s.Start, s.Holds == 1, s.CreditMessages, s.CreditBytes,
			s.StartValue, s.Incarnation, s.AckTimeoutMS}.Encode(v.Request)
	case v.Op == "produce" && v.Flags == 0:
		batch, _ := hex.DecodeString(s.Batch)
		frame := append(make([]byte, HeaderBytes), batch...)
		PutHeader(frame, Header{Op: Produce, Channel: v.Channel, BodyBytes: uint32(len(batch))}, nil)
		return frame
	case v.Op == "credit":
		return EncodeCredit(v.Channel, s.Messages, s.Bytes)
	case v.Op == "acknowledge" && s.Before == nil:
		return EncodeAcknowledge(v.Channel, all, s.HandOut)
	case v.Op == "reject":
		return EncodeReject(v.Channel, all, s.HandOut, s.MS, v.Flags&^FlagHandOut, s.Reason)
	case v.Op == "extend":
		return EncodeExtend(v.Channel, all, s.HandOut, s.MS)
	case v.Op == "started" && s.Before == nil:
		return EncodeStarted(v.Channel, all, s.HandOut)
	case v.Op == "seek":
		return EncodeSeek(v.Channel, v.Request, s.Start, s.StartValue)
	case v.Op == "read":
		return EncodeRead(v.Request, s.Topic, s.Begin, s.End, s.Bytes)
	case v.Op == "close":
		return Encode(Close, 0, v.Channel, v.Request, nil)
	}
	return nil
}

func TestFramesOfTheClientHaveTheBytesOfTheVectors(t *testing.T) {
	sound, _, _ := vectors(t)
	compared := map[string]bool{}
	for _, v := range sound {
		if made := encode(t, v); made != nil {
			compared[v.Op] = true
			if !bytes.Equal(made, v.bytes(t)) {
				t.Errorf("%s: %x, not %s", v.Name, made, v.Frame)
			}
		}
	}
	if len(compared) != 12 {
		t.Errorf("only these were compared: %v", compared)
	}
}

func TestBrokenFramesAreViolations(t *testing.T) {
	_, broken, takes := vectors(t)
	for _, v := range broken {
		frame, err := ReadFrame(bytes.NewReader(v.bytes(t)), takes)
		if err == nil {
			_, err = decode(frame)
		}
		if err == nil {
			t.Errorf("%s was accepted", v.Name)
		}
	}
}

func TestALongFrameNeedsNoMemoryBeforeItsBytesArrive(t *testing.T) {
	header := make([]byte, HeaderBytes)
	PutHeader(header, Header{Op: Deliver, Channel: 1, BodyBytes: FrameBytesMax - 1}, nil)
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := ReadFrame(bytes.NewReader(header), FrameBytesMax); err == nil {
			t.Error("no error")
		}
	})
	if allocated > 20 {
		t.Error(allocated)
	}
	var long Frame
	body := bytes.Repeat([]byte{7}, 5<<20)
	PutHeader(header, Header{Op: Deliver, Channel: 1, BodyBytes: uint32(len(body))}, body[:16])
	long, err := ReadFrame(bytes.NewReader(append(header, body...)), FrameBytesMax)
	if err != nil || !bytes.Equal(long.Body, body) {
		t.Error(err)
	}
}

// delivered makes a batch as the log delivers it.
func delivered(records []byte, s Stamp, base uint64) []byte {
	batch := append(make([]byte, BatchHeaderBytes), records...)
	PutBatchHeader(batch, s)
	le.PutUint64(batch[16:], base)
	le.PutUint32(batch[60:], CRC(batch[:60]))
	return batch
}

func TestBatchesCarryAllAttributes(t *testing.T) {
	sent := []Record{
		{Body: []byte("one"), Key: []byte("schön"), Headers: []Field{{"a", []byte("b")}, {"c", []byte{255}}}, TimeUS: 1_500_000},
		{Body: []byte{}}, {Body: []byte("drei")}}
	kinds := KindKey | KindHeaders | KindTime
	var records []byte
	for i := range sent {
		before := len(records)
		records = AppendRecord(records, &sent[i], kinds)
		if sent[i].Kinds = kinds; len(records)-before > sent[i].SizeMax() {
			t.Errorf("a record has %d bytes, at most %d were announced", len(records)-before, sent[i].SizeMax())
		}
	}
	batch, err := DecodeBatch(delivered(records, Stamp{Kinds: kinds, Count: 3}, 40))
	if err != nil || batch.BaseOffset != 40 || len(batch.Records) != 3 {
		t.Fatal(batch, err)
	}
	first := batch.Records[0]
	if string(first.Key) != "schön" || first.TimeUS != 1_500_000 || !reflect.DeepEqual(first.Headers, sent[0].Headers) {
		t.Errorf("%+v", first)
	}
	if string(batch.Records[2].Body) != "drei" || len(batch.Records[1].Body) != 0 || batch.Records[2].Key == nil {
		t.Errorf("%+v", batch.Records)
	}
	if at := Split(records, 2); string(records[len(records)-4:]) != "drei" || at != len(records)-4-4-8-2-2 {
		t.Error(at)
	}
	plain := AppendRecord(AppendRecord(nil, &sent[1], 0), &sent[2], 0)
	if got := Reencode(plain, 0, kinds); !bytes.Equal(got, records[Split(records, 1):]) {
		t.Errorf("%x", got)
	}
}

func TestRangesHoldTheirOffsets(t *testing.T) {
	all := []Range{{2, 5}, {7, 8}, {20, 30}}
	for offset := uint64(0); offset < 35; offset++ {
		wanted := offset >= 2 && offset < 5 || offset == 7 || offset >= 20 && offset < 30
		if Holds(all, offset) != wanted {
			t.Error(offset)
		}
	}
}

// FuzzFrame reads bytes of a hostile peer as they are, and once more with a right checksum, so that the fields are decoded.
func FuzzFrame(f *testing.F) {
	sound, broken, takes := vectors(f)
	for _, v := range append(sound, broken...) {
		f.Add(v.bytes(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for round := 0; round < 2; round++ {
			frame, err := ReadFrame(bytes.NewReader(data), takes)
			if err == nil {
				value, err := decode(frame)
				if d, is := value.(Delivered); is && err == nil {
					DecodeBatch(d.Batch)
				}
			}
			if len(data) < HeaderBytes {
				return
			}
			data = append([]byte{}, data...)
			covered := data[HeaderBytes:]
			if data[0] == Deliver && len(covered) > 16 {
				covered = covered[:16]
			}
			PutHeader(data, Header{Op: data[0], Flags: data[1], BodyBytes: uint32(len(data) - HeaderBytes)}, covered)
		}
	})
}

// FuzzBatch decodes records of a hostile peer in a batch with right checksums. Those that are sound are encoded to the same
// bytes again.
func FuzzBatch(f *testing.F) {
	sound, _, _ := vectors(f)
	for _, v := range sound {
		if data := v.bytes(f); data[0] == Deliver {
			batch := data[HeaderBytes+16:]
			f.Add(batch[BatchHeaderBytes:], le.Uint16(batch[6:]), le.Uint32(batch[12:]))
		}
	}
	f.Add(AppendRecord(nil, &Record{Key: []byte("k"), Headers: []Field{{"n", []byte("v")}}}, 7), uint16(7), uint32(1))
	f.Fuzz(func(t *testing.T, records []byte, kinds uint16, count uint32) {
		if len(records) < 4 {
			return
		}
		batch, err := DecodeBatch(delivered(records, Stamp{Kinds: kinds, Count: count}, 7))
		if err != nil {
			return
		}
		var again []byte
		for i := range batch.Records {
			again = AppendRecord(again, &batch.Records[i], kinds)
		}
		if !bytes.Equal(again, records) {
			t.Errorf("%x became %x", records, again)
		}
	})
}

func TestTheLongestFrameFitsIntoAnIntOf32Bits(t *testing.T) {
	if int64(FrameBytesMax) > math.MaxInt32 {
		t.Error(int64(FrameBytesMax))
	}
}
