package console

import (
	"context"
	"time"

	"barnabas/admin/cluster"
)

func topicConfigPage() page {
	return page{path: "/topic/config", title: "Topic", file: "topic_config.html", under: "/topics", data: topicConfig}
}

// topicConfigData is every setting that holds for a topic.
type topicConfigData struct {
	topicHead
	Settings []cluster.DescribedSetting
}

func topicConfig(ctx context.Context, c *Console, q question) (any, error) {
	_, t, err := topicOf(ctx, c, q, 5*time.Second)
	if err != nil {
		return nil, err
	}
	settings, err := c.Cluster.TopicConfig(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	return &topicConfigData{topicHead{t.Name, t.Internal, "config"}, settings}, nil
}
