# A static image: the binary, nothing else, and no root.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /barnabas . && mkdir -p /data && chown 65532:65532 /data

FROM scratch
COPY --from=build /barnabas /barnabas
COPY --from=build --chown=65532:65532 /data /var/lib/barnabas
USER 65532:65532
VOLUME /var/lib/barnabas
EXPOSE 9092
ENTRYPOINT ["/barnabas"]
CMD ["broker", "--override", "log.dirs=/var/lib/barnabas/logs"]
