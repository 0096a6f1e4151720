package transportrace

import (
	"context"
	"encoding/json"

	"github.com/coder/websocket"
)

// message is everything that the world's programs say to each other.
type message struct {
	Type   string `json:"type"`
	Secret string `json:"secret,omitempty"`
	Token  string `json:"token,omitempty"`
	Stream bool   `json:"stream,omitempty"`
	Tunnel int    `json:"tunnel,omitempty"`
	N      int    `json:"n,omitempty"`
}

func send(ctx context.Context, c *websocket.Conn, m message) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return c.Write(ctx, websocket.MessageText, data)
}

func receive(ctx context.Context, c *websocket.Conn) (message, error) {
	var m message
	_, data, err := c.Read(ctx)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(data, &m)
}
